// gradcheck on right gradients: they pass with digits to spare under every preset, kinks are named,
// and hidden places count as checked. tests/gradcheck_planted_test.cpp has the wrong ones.
#include "gradcheck/gradcheck.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "reference/error.hpp"
#include "tests/gradcheck_problems.hpp"

namespace plumbline {
namespace {

// ---- right gradients ----------------------------------------------------------------------------

void check_presets(const std::string& name, const std::function<Problem(bool)>& make) {
  const Operation& op = operation(name);
  for (const PresetInfo& preset : op.presets) {
    for (const bool raw : {false, true}) {
      SCOPED_TRACE(name + " " + preset.name + (raw ? " raw" : " scores"));
      Problem problem = make(raw);
      problem.options["preset"] = preset.name;
      const GradcheckReport report = gradcheck(op, problem);
      expect_pass(report);
      EXPECT_EQ(report.surrogate, preset.options.at("gradient") == "p_minus_t");
      double worst = 100;
      for (const GradcheckInput& input : report.inputs) {
        EXPECT_EQ(input.surrogate_distance.has_value(), report.surrogate);
        worst = std::min(worst, input.digits);
      }
      const auto distance = report.inputs.front().surrogate_distance;
      std::printf("  %s, %s, %s: %.1f digits, distance from the value's derivative %.2g\n",
                  name.c_str(), preset.name.c_str(), raw ? "raw" : "scores", worst,
                  distance.value_or(0));
    }
  }
}
TEST(Gradcheck, EveryPresetOfTheBlockLoss) { check_presets("csa_indexer_loss", csa_problem); }
TEST(Gradcheck, EveryPresetOfTheTokenLoss) { check_presets("dsa_indexer_loss", dsa_problem); }

TEST(Gradcheck, ScoresWithTheirCotangent) {
  expect_pass(gradcheck(operation("indexer_scores"), scores_problem()));
}

// p far below eps, at the clip, and t far below eps: each guarded logarithm on both of its sides.
TEST(Gradcheck, StudentsAndTargetsBelowTheirGuards) {
  Problem problem = csa_problem(false);
  problem.options["preset"] = "exact";
  set(problem, "scores", 13, -200);  // row 3 and 4, block 1
  set(problem, "scores", 16, -30);   // row 4, block 0
  set(problem, "query", 18, 90);     // row 3: a target of one key
  for (const char* mode : {"exact", "add", "clamp", "clip"}) {
    for (const char* gradient : {"of_value", "p_minus_t"}) {
      SCOPED_TRACE(std::string(mode) + " " + gradient);
      const Json log = mode == std::string("exact")  ? Json("exact")
                       : mode == std::string("clip") ? Json{{"mode", mode}, {"lo", -100}}
                                                     : Json{{"mode", mode}, {"eps", 1e-8}};
      problem.options["student_log"] = log;
      problem.options["target_log"] = log;
      problem.options["gradient"] = gradient;
      const GradcheckReport report = gradcheck(operation("csa_indexer_loss"), problem);
      expect_pass(report, 50);
      if (!report.surrogate) continue;
      const double distance = report.inputs[0].surrogate_distance.value();
      std::printf("  %s: %.2g from the value's derivative\n", mode, distance);
      EXPECT_EQ(distance > 1e-20, mode != std::string("exact")) << distance;
    }
  }
}

TEST(Gradcheck, RemaindersAndScaledEightBitInputs) {
  Problem problem = scores_problem();
  const auto low = std::make_shared<StoredTensor>(spread("low", {1, 3, 2}, 0x1p-54));
  problem.in.at("w").low = low;
  StoredTensor k =
      stored<std::uint8_t>("in.k", Dtype::f8_e4m3, {1, 3, 2}, {0x38, 0xb1, 0x2f, 0x41, 0x07, 0xb8});
  k.scale = std::make_shared<StoredTensor>(
      stored<float>("in.k.scale", Dtype::f32, {1, 3, 1}, {0.3f, 1.7f, 0.11f}));
  problem.in["k"] = k;
  expect_pass(gradcheck(operation("indexer_scores"), problem));
}

// ---- places where a difference is not the whole story -------------------------------------------

TEST(Gradcheck, DeadReluIsNamedAndCheckedAllTheSame) {
  Problem problem = csa_problem(true);
  for (const std::size_t at : {12u, 13u})
    set(problem, "index_q", at, 0);  // row 3, head 0: every q·k is 0
  const GradcheckReport report = gradcheck(operation("csa_indexer_loss"), problem);
  expect_pass(report);
  const GradcheckInput& q = of(report, "index_q");
  EXPECT_EQ(q.kinks, 2);
  ASSERT_EQ(q.first_kinks.size(), 2u);
  EXPECT_EQ(q.first_kinks[0].index, (Shape{0, 3, 0, 0}));
  EXPECT_EQ(q.first_kinks[0].t, 3);
  EXPECT_NE(
      notes_of(report).find("in.index_q[0, 3, 0, 0]: kink: the sign under a ReLU, row (0, 3)"),
      std::string::npos)
      << notes_of(report);
  EXPECT_EQ(of(report, "index_w").kinks, 0);
}

TEST(Gradcheck, ClampMetExactlyIsNamed) {
  Problem problem = csa_problem(false);
  for (std::size_t row = 3; row < 5; ++row) {
    for (std::size_t block = 0; block < 2; ++block) set(problem, "scores", 4 * row + block, 0);
  }
  problem.options["student_log"] = {{"mode", "clamp"}, {"eps", 0.5}};  // p is 1/2
  problem.options["reduction"] = "sum";
  const GradcheckReport report = gradcheck(operation("csa_indexer_loss"), problem);
  expect_pass(report);
  EXPECT_GE(report.inputs[0].kinks, 4);
  EXPECT_EQ(report.inputs[0].first_kinks[0].what, "the clamp of a logarithm");
}

TEST(Gradcheck, HiddenPlacesMayHoldAnything) {
  Problem problem = csa_problem(true);
  problem.in["row_mask"] = flags("row_mask", {1, 5}, {1, 1, 0, 1, 1});
  set(problem, "index_q", 0, nan);  // row 0 sees nothing
  set(problem, "index_q", 8, inf);  // row 2 is not real
  set(problem, "index_w", 5, -inf);
  set(problem, "index_k", 4, nan);  // block 2 is seen by nobody
  set(problem, "index_k", 6, 1e300);
  set(problem, "index_k", 7, 1e300);
  set(problem, "compressed", 9, nan);
  problem.cot["row_loss"] = reals("row_loss", {1, 5}, {0.5, -1.25, nan, 2, 0.75});
  const GradcheckReport report = gradcheck(operation("csa_indexer_loss"), problem);
  expect_pass(report);
  EXPECT_EQ(report.cotangents, std::vector<std::string>{"row_loss"});
  EXPECT_EQ(of(report, "index_q").not_finite, 2);
  EXPECT_EQ(of(report, "index_w").not_finite, 1);
  EXPECT_EQ(of(report, "index_k").not_finite, 1);
  GradcheckSettings along;
  along.max_coordinates = 0;
  expect_pass(gradcheck(operation("csa_indexer_loss"), problem, along));
}

// nonfinite allow: what reads a NaN has no gradient, every other row has one and it is checked.
TEST(Gradcheck, RowsBesideOneThatReadsNan) {
  Problem problem = csa_problem(false);
  problem.options["nonfinite"] = "allow";
  set(problem, "scores", 12, nan);  // row 3, block 0
  problem.cot["row_loss"] = reals("row_loss", {1, 5}, {0.5, -1.25, 3, 2, 0.75});
  for (const std::int64_t most : {100, 0}) {
    GradcheckSettings settings;
    settings.max_coordinates = most;
    expect_pass(gradcheck(operation("csa_indexer_loss"), problem, settings));
  }
  problem.cot.clear();  // through the sum nothing can be told: that is no pass
  const GradcheckReport report = gradcheck(operation("csa_indexer_loss"), problem);
  EXPECT_FALSE(report.pass());
  EXPECT_LT(report.inputs[0].share(), 95);
  EXPECT_EQ(report.inputs[0].wrong_elements, 0) << notes_of(report);
}

TEST(Gradcheck, NothingVisibleAnywhere) {
  Problem problem = csa_problem(true);
  problem.in["valid"] = flags("valid", {1, 5, 4}, std::vector<std::uint8_t>(20, 0));
  expect_pass(gradcheck(operation("csa_indexer_loss"), problem), 100);
}

// Target equals student: the gradient is 0 but for rounding, and differences cannot tell 30 digits
// of nothing.
TEST(Gradcheck, GradientOfNothingButRounding) {
  Problem problem = dsa_problem(false);
  problem.in["query"] = reals("query", {1, 4, 2, 3}, std::vector<double>(24, 0));
  problem.in["scores"] = reals("scores", {1, 4, 4}, std::vector<double>(16, 0.25));
  problem.options["preset"] = "exact";
  const GradcheckReport report = gradcheck(operation("dsa_indexer_loss"), problem);
  EXPECT_TRUE(report.pass()) << notes_of(report);
  EXPECT_EQ(report.inputs[0].share(), 100);
}

TEST(Gradcheck, ReportDoesNotDependOnThreads) {
  Problem problem = csa_problem(true);
  set(problem, "index_q", 12, 0);
  set(problem, "index_q", 13, 0);
  std::string first;
  for (const int threads : {1, 2, 3}) {
    GradcheckSettings settings;
    settings.threads = threads;
    const std::string json =
        to_json(gradcheck(operation("csa_indexer_loss"), problem, settings)).dump();
    if (first.empty()) first = json;
    EXPECT_EQ(json, first) << threads;
  }
}

// ---- the report ---------------------------------------------------------------------------------

TEST(Gradcheck, LargeInputsGoAlongDirections) {
  GradcheckSettings settings;
  settings.max_coordinates = 19;
  settings.directions = 3;
  const GradcheckReport report =
      gradcheck(operation("csa_indexer_loss"), csa_problem(true), settings);
  expect_pass(report);
  EXPECT_EQ(of(report, "index_q").directions, 3);  // 20 coordinates
  EXPECT_EQ(of(report, "index_w").directions, 0);
}

TEST(Gradcheck, TellsTheShareAndTheDigits) {
  Problem problem = csa_problem(true);
  problem.options["preset"] = "megatron";
  const GradcheckReport report = gradcheck(operation("csa_indexer_loss"), problem);
  const auto table = table_of(report);
  ASSERT_EQ(table.size(), 4u);
  EXPECT_EQ(table[0][3], "checked");
  EXPECT_EQ(table[1][3], "100 %");
  EXPECT_EQ(table[1].back(), "agrees");
  EXPECT_NE(notes_of(report).find("the gradient belongs to the surrogate"), std::string::npos);
  const Json json = to_json(report);
  EXPECT_EQ(json.at("pass"), true);
  EXPECT_EQ(json.at("surrogate"), true);
  EXPECT_EQ(json.at("inputs").at(0).at("share"), 100);
  EXPECT_EQ(json.at("inputs").at(0).at("coordinates"), 20);
  EXPECT_TRUE(json.at("inputs").at(0).contains("surrogate_distance"));
}

TEST(Gradcheck, NoGradientIsAnError) {
  EXPECT_THROW(gradcheck(operation("topk"), Problem{}), Error);
}

}  // namespace
}  // namespace plumbline
