// Every gradient of csa_attention against differences in mp100: an independent path to each input.
#include <gtest/gtest.h>

#include "gradcheck/gradcheck.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

// Rows at the last tokens of two documents, so that some windows are cut, some blocks straddle, and some rows have no
// block; the selection leaves blocks out and has empty slots.
Problem attention(Json options, bool documents, bool indices) {
  const std::int64_t B = 1, T = 7, S = 9, H = 3, D = 4, m = 2;
  options.update({{"m", m}});
  Problem problem;
  problem.options = std::move(options);
  const auto values = [](const std::string& name, const Shape& shape) {
    return support::f64s(
        shape, support::Stream(11, name).reals(count_of(shape), support::Contents::dyadic));
  };
  const auto put = [&](const std::string& name, const Shape& shape) {
    support::put_in(problem, name, values(name, shape));
  };
  put("query", {B, T, H, D}), put("kv", {B, S, D}), put("compressed", {B, S / m, D}),
      put("sink", {H});
  support::put_cot(problem, "output", values("cot.output", {B, T, H, D}));
  support::put_cot(problem, "lse", values("cot.lse", {B, T, H}));
  if (documents) {
    support::put_in(problem, "segment_ids", support::i32s({B, S}, {1, 1, 1, 1, 1, 2, 2, 2, 2}));
    support::put_in(problem, "positions", support::i32s({B, S}, {0, 1, 2, 3, 4, 0, 1, 2, 3}));
  }
  if (indices) {
    support::put_in(problem, "indices",
                    support::i32s({B, T, 2}, {0, -1, -1, 0, 1, 0, -1, -1, 2, -1, -1, 3, 3, 1}));
  }
  return problem;
}

void expect_right(const Problem& problem) {
  const GradcheckReport report = gradcheck(operation("csa_attention"), problem);
  ASSERT_EQ(report.inputs.size(), 4u);  // query, kv, compressed, sink
  for (const GradcheckInput& input : report.inputs) {
    EXPECT_TRUE(input.pass()) << "grad." << input.name << ": " << input.digits << " digits, "
                              << input.share() << " % checked. " << input.failure;
    EXPECT_GE(input.digits, gradcheck_digits) << input.name;
    EXPECT_GE(input.share(), gradcheck_share) << input.name;
    std::printf("  grad.%s: %.1f digits\n", input.name.c_str(), input.digits);
  }
}

TEST(Gradcheck, CsaAttentionOverAllBlocks) {
  expect_right(attention({{"window", 3}, {"softmax_scale", 0.5}}, false, false));
}
TEST(Gradcheck, CsaAttentionSelectedWithTheSinkInItsLse) {
  expect_right(
      attention({{"window", 2}, {"lse_includes_sink", true}, {"lse_base", 2}}, true, true));
}
TEST(Gradcheck, CsaAttentionWithoutAWindow) {
  Problem problem = attention({{"window", 0}, {"lse_includes_sink", true}}, true, true);
  problem.schedule = {{"key_block", 1}, {"head_chunk", 2}};
  expect_right(problem);
}
TEST(Gradcheck, CsaAttentionOfABlockNamedTwice) {
  Problem problem = attention({{"window", 1}, {"duplicates", "multiset"}}, false, false);
  support::put_in(problem, "indices", support::i32s({1, 7, 3}, {0, 0, -1, 0, -1, 0, 1, 0, 1, 1, -1,
                                                                1, 2, 2,  2, 0,  0, 3, 3, 3, 3}));
  expect_right(problem);
}

}  // namespace
}  // namespace plumbline
