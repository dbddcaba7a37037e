// Verdicts on values, bounds and gauges made by hand. What it is meant to catch: a verdict on the wrong side of an
// edge, a bound that proves nothing taken for a pass, a NaN that slips through, a set that no scores would select.
#include <bit>

#include "tests/judge_testing.hpp"

namespace plumbline {
namespace {

Verdict verdict(const Value& value, const StoredTensor& actual,
                const KernelContract& contract = f64()) {
  return judge(value, actual, contract).verdict;
}

TEST(Judge, TiersSeparateThreeVerdicts) {
  const Value value = value_of({1}, {8}, 0.5, 0.125);
  EXPECT_EQ(verdict(value, doubles({1}, {8})), Verdict::pass);
  EXPECT_EQ(verdict(value, doubles({1}, {8.125})), Verdict::pass);
  EXPECT_EQ(verdict(value, doubles({1}, {7.75})), Verdict::suspect);
  EXPECT_EQ(verdict(value, doubles({1}, {8.5})), Verdict::suspect);
  EXPECT_EQ(verdict(value, doubles({1}, {8.5000001})), Verdict::fail);
  const TensorVerdict tensor = judge(value, doubles({1}, {8.25}), f64());
  EXPECT_NEAR(static_cast<double>(tensor.margin), 0.5, 1e-12);
  EXPECT_NEAR(static_cast<double>(tensor.margin2), 2, 1e-12);
}

TEST(Judge, StoringAddsOneRounding) {
  const Value third = value_of({1}, {1.0 / 3});
  EXPECT_EQ(verdict(third, floats({1}, {1.0f / 3}), f32()), Verdict::pass);
  const float next = std::nextafter(1.0f / 3, 1.0f);
  EXPECT_EQ(verdict(third, floats({1}, {next}), f32()), Verdict::fail);
  // A tensor coarser than the contract's output is judged by its own dtype.
  const auto bf16 = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(0.333984375f) >> 16);
  EXPECT_EQ(verdict(third, tensor_of<std::uint16_t>({1}, Dtype::bf16, {bf16}), f32()),
            Verdict::pass);
  // A contract coarser than the tensor allows what it says.
  EXPECT_EQ(verdict(third, floats({1}, {0.333984375f}), contract_named("bf16_f32acc")),
            Verdict::pass);
  EXPECT_EQ(judge(third, floats({1}, {1.0f / 3}), f32()).worst.at(0).dominating, "storage");
}

TEST(Judge, AnExactZeroIsOne) {
  const Value zero = value_of({2}, {0, 1}, 0, 0, 0);
  EXPECT_EQ(verdict(zero, floats({2}, {-0.0f, 1}), f32()), Verdict::pass);
  EXPECT_EQ(verdict(zero, floats({2}, {1e-45f, 1}), f32()), Verdict::fail);
}

TEST(Judge, NanAndInfinitiesStandInTheSamePlaces) {
  const Value value = value_of({4}, {inf, -inf, nan, 1}, 0.5, 0.5);
  EXPECT_EQ(verdict(value, doubles({4}, {inf, -inf, nan, 1})), Verdict::pass);
  EXPECT_EQ(verdict(value, doubles({4}, {-inf, -inf, nan, 1})), Verdict::fail);
  EXPECT_EQ(verdict(value, doubles({4}, {1e300, -inf, nan, 1})), Verdict::fail);
  EXPECT_EQ(verdict(value, doubles({4}, {inf, -inf, 0, 1})), Verdict::fail);
  EXPECT_EQ(verdict(value, doubles({4}, {inf, -inf, nan, nan})), Verdict::fail);
  const TensorVerdict tensor = judge(value, doubles({4}, {inf, -inf, nan, inf}), f64());
  EXPECT_EQ(tensor.verdict, Verdict::fail);
  EXPECT_TRUE(std::isinf(tensor.margin));
  EXPECT_EQ(tensor.worst.at(0).why, "inf, where a number was expected");
}

TEST(Judge, StoringMayOverflow) {
  KernelContract contract = f32();
  contract.output = Format::f16;
  const std::uint16_t infinite = 0x7c00, most = 0x7bff;
  const auto half = [](std::uint16_t code) {
    return tensor_of<std::uint16_t>({1}, Dtype::f16, {code});
  };
  EXPECT_EQ(verdict(value_of({1}, {70000}, 0, 0, 1e6), half(infinite), contract), Verdict::pass);
  EXPECT_EQ(verdict(value_of({1}, {-70000}, 0, 0, 1e6), half(infinite), contract), Verdict::fail);
  EXPECT_EQ(verdict(value_of({1}, {60000}, 0, 0, 1e6), half(infinite), contract), Verdict::fail);
  EXPECT_EQ(verdict(value_of({1}, {65519}, 0, 0, 1e6), half(most), contract), Verdict::pass);
  const auto eight = [](std::uint8_t code) {
    return tensor_of<std::uint8_t>({1}, Dtype::f8_e4m3, {code});
  };
  EXPECT_EQ(verdict(value_of({1}, {1000}, 0, 0, 1e6), eight(0x7e), contract), Verdict::pass);
  EXPECT_EQ(verdict(value_of({1}, {1000}, 0, 0, 1e6), eight(0x7f), contract), Verdict::pass);
  EXPECT_EQ(verdict(value_of({1}, {1000}, 0, 0, 1e6), eight(0x7d), contract), Verdict::fail);
  EXPECT_EQ(verdict(value_of({1}, {300}, 0, 0, 1e6), eight(0x7f), contract), Verdict::fail);
}

TEST(Judge, ABoundBeyondItsScaleProvesNothing) {
  // Within the bound, but anything would be.
  EXPECT_EQ(verdict(value_of({1}, {1}, 2, 2, 1.5), doubles({1}, {1})), Verdict::unprovable);
  EXPECT_EQ(verdict(value_of({1}, {1}, inf, inf, 1.5), doubles({1}, {1})), Verdict::unprovable);
  EXPECT_EQ(verdict(value_of({1}, {1}, nan, nan, 1.5), doubles({1}, {1})), Verdict::unprovable);
  // Outside of it is a proof all the same.
  EXPECT_EQ(verdict(value_of({1}, {1}, 2, 2, 1.5), doubles({1}, {4})), Verdict::fail);
  // A value that cancels is seen against its gauge, not against itself.
  EXPECT_EQ(verdict(value_of({1}, {1e-9}, 1e-3, 1e-3, 1), doubles({1}, {0})), Verdict::pass);
  // Or against the range of its row.
  EXPECT_EQ(verdict(value_of({1, 3}, {0, 5, -5}, 1, 1, 0), doubles({1, 3}, {0, 5, -5})),
            Verdict::pass);
  EXPECT_EQ(verdict(value_of({3, 1}, {0, 5, -5}, 1, 1, 0), doubles({3, 1}, {0, 5, -5})),
            Verdict::unprovable);
  // Underflow alone makes nothing unprovable.
  EXPECT_EQ(verdict(value_of({1}, {0}, 1e-44, 1e-44, 0), floats({1}, {0}), f32()), Verdict::pass);
}

TEST(Judge, WithoutSecondTierThereIsNoSuspect) {
  Value value = value_of({1}, {8}, 0.5);
  value.bound2.clear();
  EXPECT_EQ(verdict(value, doubles({1}, {8.4})), Verdict::pass);
}

TEST(Judge, ShapesAndKindsThatDoNotFitFail) {
  const Value value = value_of({2}, {1, 2});
  EXPECT_EQ(judge(value, doubles({1, 2}, {1, 2}), f64()).reason, "shape [1, 2], expected [2]");
  EXPECT_EQ(verdict(value, tensor_of<std::int32_t>({2}, Dtype::i32, {1, 2})), Verdict::fail);
}

TEST(Judge, IntegersAndFlagsAreEqual) {
  Value value;
  value.kind = Kind::integer;
  value.shape = {3};
  value.integers = {1, 2, 3};
  EXPECT_EQ(verdict(value, tensor_of<std::int64_t>({3}, Dtype::i64, {1, 2, 3})), Verdict::pass);
  const TensorVerdict tensor =
      judge(value, tensor_of<std::int32_t>({3}, Dtype::i32, {1, 5, 3}), f64());
  EXPECT_EQ(tensor.verdict, Verdict::fail);
  EXPECT_EQ(tensor.worst.at(0).actual_integer, 5);
  value.kind = Kind::boolean;
  value.booleans = {1, 0, 1};
  EXPECT_EQ(verdict(value, tensor_of<std::uint8_t>({3}, Dtype::u8, {7, 0, 1})), Verdict::pass);
  EXPECT_EQ(verdict(value, tensor_of<std::uint8_t>({3}, Dtype::boolean, {1, 1, 1})), Verdict::fail);
}

TEST(Judge, EmptyTensorsPass) {
  EXPECT_EQ(verdict(value_of({0, 3}, {}), doubles({0, 3}, {})), Verdict::pass);
  EXPECT_EQ(verdict(value_of({}, {2}), doubles({}, {2})), Verdict::pass);
}

TEST(Judge, TheWorstComesFirst) {
  const Value value = value_of({4}, {1, 1, 1, 1}, 0.5, 0.125);
  const TensorVerdict tensor = judge(value, doubles({4}, {1.1, 3, 1.3, nan}), f64(), 3);
  ASSERT_EQ(tensor.worst.size(), 3u);
  EXPECT_EQ(tensor.worst[0].position, 3);
  EXPECT_EQ(tensor.worst[1].position, 1);
  EXPECT_EQ(tensor.worst[2].position, 2);
  EXPECT_EQ(tensor.counts[0], 1);
  EXPECT_EQ(tensor.counts[1], 1);
  EXPECT_EQ(tensor.counts[3], 2);
  EXPECT_TRUE(judge(value, doubles({4}, {1, 3, 1, 1}), f64(), 0).worst.empty());
}

// ---- selections ------------------------------------------------------------------------------------------------

struct Selected {
  std::vector<double> scores;
  std::int64_t k = 2;
  double beta = 0, beta2 = 0;
  bool threshold = false;
  KernelContract contract = f64();

  TensorVerdict judged(const std::vector<std::int32_t>& indices) const {
    return judge_selection(
        shape_like(Kind::integer, indices.size()), rows(), {k, threshold},
        tensor_of<std::int32_t>({1, std::int64_t(indices.size())}, Dtype::i32, indices), contract);
  }
  TensorVerdict judged_flags(const std::vector<std::uint8_t>& flags) const {
    return judge_selection(
        shape_like(Kind::boolean, flags.size()), rows(), {k, threshold},
        tensor_of<std::uint8_t>({1, std::int64_t(flags.size())}, Dtype::boolean, flags), contract);
  }
  Verdict operator()(const std::vector<std::int32_t>& indices) const {
    return judged(indices).verdict;
  }

 private:
  static Value shape_like(Kind kind, std::size_t width) {
    Value value;
    value.kind = kind;
    value.shape = {1, static_cast<std::int64_t>(width)};
    return value;
  }
  SelectionScores rows() const {
    return scores_of(value_of({1, static_cast<std::int64_t>(scores.size())}, scores, beta, beta2));
  }
};

TEST(JudgeSelection, IsASet) {
  const Selected rows{{5, 3, 4, 1}};
  EXPECT_EQ(rows({0, 2}), Verdict::pass);
  EXPECT_EQ(rows({2, 0}), Verdict::pass);
  EXPECT_EQ(rows({0, 1}), Verdict::fail);
  EXPECT_EQ(rows.judged({0, 1}).worst.at(0).why, "key 1 instead of key 2");
  EXPECT_EQ(rows({0, 0}), Verdict::fail);
  EXPECT_EQ(rows({0, -1}), Verdict::fail);
  EXPECT_EQ(rows({0, 4}), Verdict::fail);
  EXPECT_EQ(rows({0, -2}), Verdict::fail);
  EXPECT_EQ(rows.judged_flags({1, 0, 1, 0}).verdict, Verdict::pass);
  EXPECT_EQ(rows.judged_flags({1, 1, 1, 0}).verdict, Verdict::fail);
}

TEST(JudgeSelection, HiddenKeysAreNeverSelected) {
  const Selected rows{{5, -inf, 4, -inf}, 3};
  EXPECT_EQ(rows({0, 2, -1}), Verdict::pass);
  EXPECT_EQ(rows({-1, 0, 2}), Verdict::pass);
  EXPECT_EQ(rows({0, 2, 1}), Verdict::fail);
  EXPECT_EQ(rows({0, -1, -1}), Verdict::fail);
  EXPECT_EQ(Selected({{-inf, -inf}, 1})({-1}), Verdict::pass);
}

TEST(JudgeSelection, WhatBoundsCannotTellApartMayBeSwapped) {
  Selected rows{{5, 3, 3.5, 1}, 2, 0.25, 0.125};
  EXPECT_EQ(rows({0, 2}), Verdict::pass);
  EXPECT_EQ(rows({0, 1}), Verdict::suspect);  // 0.5 apart: twice 0.25 reaches, twice 0.125 does not
  rows.beta = 0.2;
  EXPECT_EQ(rows({0, 1}), Verdict::fail);
  rows.beta = rows.beta2 = 0.25;
  EXPECT_EQ(rows({0, 1}), Verdict::pass);
  EXPECT_EQ(rows({0, 3}), Verdict::fail);
  rows.beta = rows.beta2 = inf;
  EXPECT_EQ(rows({0, 3}), Verdict::unprovable);
}

TEST(JudgeSelection, TieRulesHoldWhereScoresAreExact) {
  Selected rows{{3, 7, 3, 3}, 2};
  EXPECT_EQ(rows({1, 3}), Verdict::pass);
  rows.contract.selection.tie = SelectionRule::Tie::lowest_index;
  EXPECT_EQ(rows({1, 3}), Verdict::fail);
  EXPECT_EQ(rows({1, 0}), Verdict::pass);
  rows.contract.selection.tie = SelectionRule::Tie::highest_index;
  EXPECT_EQ(rows({1, 3}), Verdict::pass);
  EXPECT_EQ(rows({1, 0}), Verdict::fail);
  rows.beta = rows.beta2 = 1e-9;
  EXPECT_EQ(rows({1, 0}), Verdict::pass);
}

TEST(JudgeSelection, OrderWhereItIsPromised) {
  Selected rows{{3, 7, 3, 1}, 3};
  EXPECT_EQ(rows({0, 1, 2}), Verdict::pass);
  rows.contract.selection.order = SelectionRule::Order::best_first;
  EXPECT_EQ(rows({0, 1, 2}), Verdict::fail);
  EXPECT_EQ(rows({1, 2, 0}), Verdict::pass);
  rows.contract.selection.tie = SelectionRule::Tie::lowest_index;
  EXPECT_EQ(rows({1, 2, 0}), Verdict::fail);
  EXPECT_EQ(rows({1, 0, 2}), Verdict::pass);
}

TEST(JudgeSelection, ThresholdKeepsEveryEqual) {
  Selected rows{{3, 7, 3, 1}, 2};
  rows.threshold = true;
  EXPECT_EQ(rows.judged_flags({1, 1, 1, 0}).verdict, Verdict::pass);
  EXPECT_EQ(rows.judged_flags({1, 1, 0, 0}).verdict, Verdict::fail);
  EXPECT_EQ(rows.judged_flags({1, 1, 1, 1}).verdict, Verdict::fail);
  EXPECT_EQ(rows.judged_flags({0, 1, 0, 0}).verdict, Verdict::fail);
  EXPECT_EQ(rows.judged({1, 0}).verdict, Verdict::pass);
}

TEST(JudgeSelection, NanComesAfterNumbers) {
  const Selected rows{{nan, 1, nan, 2}, 3};
  EXPECT_EQ(rows({1, 3, 0}), Verdict::pass);
  EXPECT_EQ(rows({1, 3, 2}), Verdict::pass);
  EXPECT_EQ(rows({1, 0, 2}), Verdict::fail);
  EXPECT_EQ(Selected({{inf, 1, inf}, 1})({1}), Verdict::fail);
}

}  // namespace
}  // namespace plumbline
