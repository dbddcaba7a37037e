// Every gradient of the MLA operations against differences in mp100: an independent path to each weight.
#include <gtest/gtest.h>

#include "gradcheck/gradcheck.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

class Builder {
 public:
  explicit Builder(Json options) { problem.options = std::move(options); }
  Problem problem;
  Builder& real(const std::string& name, const Shape& shape) {
    support::put_in(problem, name, values(name, shape));
    return *this;
  }
  Builder& cot(const std::string& name, const Shape& shape) {
    support::put_cot(problem, name, values("cot." + name, shape));
    return *this;
  }
  Builder& projection() {
    return real("wq_a", {5, 6})
        .real("q_norm", {6})
        .real("wq_b", {6, 2, 7})
        .real("wkv_a", {5, 7})
        .real("kv_norm", {3})
        .real("wkv_b", {3, 2, 8})
        .real("bq_a", {6})
        .real("bq_b", {2, 7})
        .real("bkv_a", {7})
        .real("bkv_b", {2, 8});
  }
  Builder& indexer(const std::string& prefix) {
    return real(prefix + "wq_b", {6, 3, 4})
        .real(prefix + "wk", {5, 4})
        .real(prefix + "k_norm_weight", {4})
        .real(prefix + "k_norm_bias", {4})
        .real(prefix + "weights_proj", {5, 3});
  }

 private:
  static StoredTensor values(const std::string& name, const Shape& shape) {
    return support::f64s(
        shape, support::Stream(7, name).reals(count_of(shape), support::Contents::dyadic));
  }
};

const Json no_options = Json::object();
const Json rope = {{"theta", 100.0}, {"dim", 4}};
const Json sliced = {{"slice_bounds", Json::array({1, 3})}}, rotated = {{"rope", rope}};
const Json widths = {{"nope_dim", 3}, {"rope_dim", 4}, {"v_dim", 5}, {"rope", rope}};

void expect_right(const char* name, const Problem& problem) {
  const GradcheckReport report = gradcheck(operation(name), problem);
  ASSERT_FALSE(report.inputs.empty());
  for (const GradcheckInput& input : report.inputs) {
    EXPECT_TRUE(input.pass()) << name << " grad." << input.name << ": " << input.digits
                              << " digits, " << input.share() << " % checked. " << input.failure;
    EXPECT_GE(input.digits, gradcheck_digits) << input.name;
    EXPECT_GE(input.share(), gradcheck_share) << input.name;
  }
}

TEST(Gradcheck, MlaProjectionOfEveryWeight) {
  Json options = widths;
  options["rope"]["output"] = "half";
  expect_right("mla_projection", Builder(options)
                                     .real("x", {2, 3, 5})
                                     .projection()
                                     .cot("query", {2, 3, 2, 7})
                                     .cot("key", {2, 3, 2, 7})
                                     .cot("value", {2, 3, 2, 5})
                                     .problem);
}

TEST(Gradcheck, MlaAttentionWithASinkAndItsLse) {
  expect_right("mla_attention", Builder({{"softmax_scale", 0.5}, {"lse_includes_sink", true}})
                                    .real("query", {1, 3, 4, 3})
                                    .real("key", {1, 5, 2, 3})
                                    .real("value", {1, 5, 2, 2})
                                    .real("sink", {4})
                                    .cot("output", {1, 3, 4, 2})
                                    .cot("lse", {1, 3, 4})
                                    .problem);
}

TEST(Gradcheck, MlaAttentionAbsorbed) {
  Problem problem = Builder({{"nope_dim", 3}, {"v_dim", 5}})
                        .real("query", {1, 4, 2, 7})
                        .real("kv_latent", {1, 4, 3})
                        .real("k_pe", {1, 4, 4})
                        .real("wkv_b", {3, 2, 8})
                        .real("bkv_b", {2, 8})
                        .cot("output", {1, 4, 2, 5})
                        .problem;
  problem.schedule = {{"absorbed", true}};
  expect_right("mla_attention", problem);
}

TEST(Gradcheck, MergeAttention) {
  expect_right("merge_attention", Builder(no_options)
                                      .real("outputs", {3, 1, 2, 2, 4})
                                      .real("lse", {3, 1, 2, 2})
                                      .real("sink", {2})
                                      .cot("output", {1, 2, 2, 4})
                                      .cot("lse", {1, 2, 2})
                                      .problem);
}

TEST(Gradcheck, DsaIndexerOfEveryInput) {
  expect_right("dsa_indexer", Builder({{"k", 2}, {"rope", rope}})
                                  .real("x", {2, 4, 5})
                                  .real("q_latent", {2, 4, 6})
                                  .indexer("")
                                  .cot("scores", {2, 4, 4})
                                  .cot("index_w", {2, 4, 3})
                                  .problem);
}

TEST(Gradcheck, NormsRopeAndLinear) {
  expect_right(
      "rms_norm",
      Builder(no_options).real("x", {2, 3, 5}).real("weight", {5}).cot("y", {2, 3, 5}).problem);
  expect_right("layer_norm", Builder(no_options)
                                 .real("x", {2, 3, 5})
                                 .real("weight", {5})
                                 .real("bias", {5})
                                 .cot("y", {2, 3, 5})
                                 .problem);
  expect_right("rope", Builder(rotated).real("x", {1, 5, 2, 6}).cot("y", {1, 5, 2, 6}).problem);
  expect_right("linear", Builder(sliced)
                             .real("x", {4, 3})
                             .real("weight", {3, 2, 5})
                             .real("bias", {2, 5})
                             .cot("y", {4, 2, 2})
                             .problem);
}

TEST(Gradcheck, MlaLayerOfEveryWeightUnderBothKindsOfGradient) {
  for (const char* preset : {"maxtext_v32", "megatron"}) {
    for (const bool sparse : {false, true}) {
      Json options = widths;
      options["indexer"] = {{"k", 2}, {"rope", rope}};
      options["loss"] = {{"preset", preset}, {"sparse", sparse}, {"coefficient", 0.5}};
      Builder layer(options);
      layer.real("x", {1, 4, 5})
          .projection()
          .real("wo", {2, 5, 5})
          .indexer("indexer_")
          .cot("output", {1, 4, 5});
      layer.cot("loss", {});
      expect_right("mla_layer", layer.problem);
    }
  }
}

}  // namespace
}  // namespace plumbline
