// A layer in calls (schedules prefill and step) against the same layer in one: inputs whose storage is not plain, fp8
// tokens with scales and float masks with remainders, must be cut along with their tokens.
#include <gtest/gtest.h>

#include "reference/error.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

Problem layer() {
  const Json rope = {{"theta", 100.0}, {"dim", 4}};
  Problem problem;
  problem.options = {{"nope_dim", 3}, {"rope_dim", 4}, {"v_dim", 5}, {"rope", rope}};
  problem.options["indexer"] = {{"k", 2}, {"rope", rope}};
  const auto real = [&](const char* name, const Shape& shape) {
    support::put_in(problem, name,
                    support::f64s(shape, support::Stream(3, name).reals(
                                             count_of(shape), support::Contents::dyadic)));
  };
  real("x", {2, 6, 5}), real("wq_a", {5, 6}), real("q_norm", {6}), real("wq_b", {6, 2, 7}),
      real("wkv_a", {5, 7});
  real("kv_norm", {3}), real("wkv_b", {3, 2, 8}), real("wo", {2, 5, 5}),
      real("indexer_wq_b", {6, 3, 4});
  real("indexer_wk", {5, 4}), real("indexer_k_norm_weight", {4}), real("indexer_k_norm_bias", {4});
  real("indexer_weights_proj", {5, 3});
  return problem;
}

void expect_same_in_calls(Problem problem) {
  const Evaluation how{.precision = Precision::f64};
  const Result whole = operation("mla_layer").evaluate(problem, how);
  for (const Json& schedule :
       {Json{{"prefill", 1}}, Json{{"step", 2}}, Json{{"prefill", 3}, {"step", 1}}}) {
    problem.schedule = schedule;
    const Result calls = operation("mla_layer").evaluate(problem, how);
    const std::vector<double>&x = whole.find("output")->high, &y = calls.find("output")->high;
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(x[i], y[i], 1e-12 * (1 + std::abs(x[i]))) << schedule << i;
  }
}

TEST(MlaCalls, ScalesOfF8TokensMoveWithTheirTokens) {
  for (const std::int64_t tiles : {1, 5}) {
    Problem problem = layer();
    std::vector<std::uint8_t> codes;
    for (int i = 0; i < 2 * 6 * 5; ++i)
      codes.push_back(static_cast<std::uint8_t>(0x30 + i * 7 % 23));
    StoredTensor x = support::own<std::uint8_t>({2, 6, 5}, Dtype::f8_e4m3, codes);
    std::vector<double> scales;
    for (std::int64_t i = 0; i < 2 * 6 * tiles; ++i)
      scales.push_back(static_cast<double>(1 + i % 4) / 4);
    x.scale = std::make_shared<StoredTensor>(support::f32s({2, 6, tiles}, scales));
    support::put_in(problem, "x", x);
    expect_same_in_calls(problem);
  }
}

TEST(MlaCalls, FloatMasksAreCutWithTheirRemainders) {
  Problem problem = layer();
  std::vector<double> plane, low;
  for (int i = 0; i < 2 * 6 * 6; ++i) {
    const bool hidden = i % 5 == 2;
    plane.push_back(hidden ? -10000.0 : i % 3 == 0 ? 1.0 : 0.0);
    low.push_back(hidden ? 0.0 : i % 3 == 0 ? -1.0 : 0.0);  // 1 + (−1) = 0: visible
  }
  StoredTensor mask = support::f64s({2, 6, 6}, plane);
  mask.low = std::make_shared<StoredTensor>(support::f64s({2, 6, 6}, low));
  support::put_in(problem, "mask", mask);
  expect_same_in_calls(problem);
}

TEST(MlaCalls, LayersWithALossOrAGivenStageAreRefused) {
  Problem problem = layer();
  problem.schedule = {{"step", 1}};
  problem.options["loss"] = {{"sparse", false}};
  EXPECT_THROW(operation("mla_layer").evaluate(problem, {}), Error);
  problem.options["loss"] = nullptr;
  support::put_given(problem, "k_pe", support::f64s({2, 6, 4}, std::vector<double>(48)));
  EXPECT_THROW(operation("mla_layer").evaluate(problem, {}), Error);
}

TEST(Blocks, AHugeBlockSizeHasNoBlocksAndAnEnd) {
  Problem problem;
  problem.options = {{"k", 1}, {"keys", "blocks"}, {"m", INT64_MAX}, {"grid", "document"}};
  support::put_in(problem, "scores", support::f64s({1, 4, 0}, {}));
  support::put_in(problem, "segment_ids", support::i32s({1, 4}, {0, 0, 1, 1}));
  const Result result = operation("topk").evaluate(problem, {});
  EXPECT_EQ(result.find("indices")->integers, (std::vector<std::int32_t>{-1, -1, -1, -1}));
}

}  // namespace
}  // namespace plumbline
