// Every gradient of csa_compress and csa_indexer against differences in mp100.
#include <gtest/gtest.h>

#include "gradcheck/gradcheck.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

class Case {
 public:
  Case(const char* op, Json options) : op_(op) { problem.options = std::move(options); }
  Problem problem;
  Case& real(const std::string& name, const Shape& shape) {
    support::put_in(problem, name, values(name, shape));
    return *this;
  }
  Case& cot(const std::string& name, const Shape& shape) {
    support::put_cot(problem, name, values("cot." + name, shape));
    return *this;
  }
  Case& integers(const std::string& name, const Shape& shape, support::Integers list) {
    support::put_in(problem, name, support::i32s(shape, std::move(list)));
    return *this;
  }
  void expect_right() const {
    const GradcheckReport report = gradcheck(operation(op_), problem);
    std::size_t differentiable = 0;
    for (const TensorInfo& info : operation(op_).inputs)
      differentiable += info.differentiable && problem.in.contains(info.name) ? 1 : 0;
    EXPECT_EQ(report.inputs.size(), differentiable) << "every input";
    for (const GradcheckInput& input : report.inputs) {
      EXPECT_TRUE(input.pass()) << op_ << " grad." << input.name << ": " << input.digits
                                << " digits. " << input.failure;
      EXPECT_GE(input.digits, 60) << input.name;
      EXPECT_EQ(input.share(), 100) << input.name;
    }
  }

 private:
  static StoredTensor values(const std::string& name, const Shape& shape) {
    return support::f64s(
        shape, support::Stream(11, name).reals(count_of(shape), support::Contents::dyadic));
  }
  const char* op_;
};

const Json rope = {{"theta", 100.0}, {"dim", 2}};
const Json document_grid = {{"m", 2}, {"grid", "document"}, {"mask", {{"padding_segment", 7}}}};

TEST(Gradcheck, CsaCompressOfEveryInputAndOutput) {
  Case both("csa_compress", {{"m", 3}, {"rope", rope}});
  both.real("kv", {2, 8, 8}).real("gate", {2, 8, 8}).real("position_bias", {3, 8});
  both.real("norm_weight", {4}).real("prior_kv", {2, 3, 8}).real("prior_gate", {2, 3, 8});
  support::put_in(both.problem, "prior_present", support::bools({2}, "10"));
  both.cot("compressed", {2, 2, 4}).cot("prior_kv", {2, 3, 8}).cot("prior_gate", {2, 3, 8});
  both.cot("leftover_kv", {2, 2, 8}).cot("leftover_gate", {2, 2, 8});
  both.expect_right();
}

TEST(Gradcheck, CsaCompressOnBothGridsAndWithCutLanes) {
  Case documents("csa_compress", document_grid);
  documents.real("kv", {1, 12, 6}).real("gate", {1, 12, 6}).real("position_bias", {2, 6});
  documents.integers("segment_ids", {1, 12}, {0, 0, 0, 0, 0, 7, 2, 2, 2, 2, 7, 7});
  documents.cot("compressed", {1, 4, 3}).expect_right();

  Case cut("csa_compress", {{"m", 1}, {"boundary", "segments"}, {"norm", false}});
  cut.real("kv", {1, 19, 2}).real("gate", {1, 19, 2}).cot("compressed", {1, 19, 1});
  cut.integers("cu_seqlens", {5}, {0, 5, 11, 11, 19}).expect_right();
}

TEST(Gradcheck, CsaCompressWithOneLaneAndWithoutABlock) {
  Case one("csa_compress", {{"m", 2}, {"overlap", false}});
  one.real("kv", {2, 37, 2}).real("gate", {2, 37, 2}).real("norm_weight", {2});
  one.cot("compressed", {2, 18, 2}).expect_right();

  Case none("csa_compress", {{"m", 5}});
  none.real("kv", {2, 3, 4}).real("gate", {2, 3, 4}).real("position_bias", {5, 4});
  none.real("prior_kv", {2, 5, 4}).real("prior_gate", {2, 5, 4});
  none.cot("prior_kv", {2, 5, 4}).cot("leftover_gate", {2, 3, 4}).expect_right();
}

Case& indexer(Case& c, std::int64_t batch, std::int64_t tokens, std::int64_t m) {
  c.real("x", {batch, tokens, 4}).real("q_latent", {batch, tokens, 5}).real("q_proj", {5, 2, 3});
  c.real("kv_proj", {4, 6}).real("gate_proj", {4, 6}).real("position_bias", {m, 6});
  return c.real("kv_norm_weight", {3}).real("weights_proj", {4, 2});
}

TEST(Gradcheck, CsaIndexerOfEveryInput) {
  Case physical("csa_indexer", {{"m", 3}, {"k", 2}, {"rope", rope}});
  indexer(physical, 2, 11, 3).cot("scores", {2, 11, 3}).cot("index_q", {2, 11, 2, 3});
  physical.expect_right();

  Case documents("csa_indexer", {{"m", 2}, {"k", 2}, {"grid", "document"}, {"rope", rope}});
  indexer(documents, 1, 11, 2).cot("scores", {1, 4, 5}).cot("index_k", {1, 5, 3});
  documents.cot("index_w", {1, 11, 2}).integers("cu_seqlens", {3}, {0, 5, 11});
  documents.integers("row_index", {4}, {10, 3, 4, 7}).expect_right();
}

}  // namespace
}  // namespace plumbline
