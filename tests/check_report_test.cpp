// Contracts as text, causes and reports. What it is meant to catch: a key that is read over, a cause told where it
// does not explain every element, a report that is no valid page.
#include "verdict/check_report.hpp"
#include "reference/error.hpp"
#include "tests/judge_testing.hpp"
#include "verdict/hints.hpp"

namespace plumbline {
namespace {

// ---- contracts ---------------------------------------------------------------------------------------------------

std::string complaint(const char* text) {
  try {
    contract_from_json(nlohmann::json::parse(text));
  } catch (const Error& error) {
    return error.where();
  }
  return "";
}

TEST(Contracts, PresetsReadAndWriteThemselves) {
  for (const ContractPreset& preset : contract_presets()) {
    const nlohmann::json json = to_json(preset.contract);
    EXPECT_EQ(to_json(contract_from_json(json)), json) << preset.name;
    EXPECT_EQ(json["name"], preset.name);
  }
  EXPECT_EQ(
      contract_from_json(nlohmann::json::parse(R"({"preset": "hopper_fp8"})")).accumulator.block,
      32);
}

TEST(Contracts, ReadingIsStrict) {
  EXPECT_EQ(complaint("{}"), "");
  EXPECT_EQ(complaint("[]"), "contract");
  EXPECT_EQ(complaint(R"({"inputs": "f32"})"), "contract.\"inputs\"");
  EXPECT_EQ(complaint(R"({"input": "f33"})"), "contract.input");
  EXPECT_EQ(complaint(R"({"ulp": {"exp": -1}})"), "contract.ulp.exp");
  EXPECT_EQ(complaint(R"({"ulp": {"exp": "2"}})"), "contract.ulp.exp");
  EXPECT_EQ(complaint(R"({"accumulator": {"block": 16}})"), "contract.accumulator.fraction_bits");
  EXPECT_EQ(complaint(R"({"accumulator": {"promotion": 16}})"), "contract.accumulator.block");
  EXPECT_EQ(complaint(R"({"accumulator": {"block": -1}})"), "contract.accumulator.block");
  EXPECT_EQ(complaint(R"({"accumulator": {"format": "bf16"}})"), "contract.accumulator.format");
  EXPECT_EQ(complaint(R"({"algebra": {"tile": 0}})"), "contract.algebra.tile");
  EXPECT_EQ(complaint(R"({"algebra": {"softmax": "one_pass"}})"), "contract.algebra.softmax");
  EXPECT_EQ(complaint(R"({"rounding_points": {"probs": "bf16"}})"),
            "contract.rounding_points.\"probs\"");
  EXPECT_EQ(complaint(R"({"flush_to_zero": 1})"), "contract.flush_to_zero");
  EXPECT_EQ(complaint(R"({"preset": "cpu"})"), "contract");
  EXPECT_EQ(complaint(R"({"rounding_points": {"scores": null}})"), "");
}

// ---- causes ----------------------------------------------------------------------------------------------------

std::vector<std::string> patterns(const Value& value, const StoredTensor& actual) {
  TensorVerdict tensor = judge(value, actual, f64());
  tensor.axes = {"T", "H"};
  return patterns_of(value, actual, tensor, storage_of(f64(), actual.dtype));
}
bool says(const std::vector<std::string>& hints, std::string_view text) {
  for (const std::string& hint : hints) {
    if (hint.find(text) != std::string::npos) return true;
  }
  return false;
}
const std::vector<double> grid = {1, 2.5, -3, 4, 7, -6, 0.5, 9, 11, -13, 17, 1.25};

std::vector<double> mapped(double factor, double summand) {
  std::vector<double> list;
  for (const double x : grid) list.push_back(factor * x + summand);
  return list;
}

TEST(Hints, FactorsAndSummands) {
  const Value value = value_of({4, 3}, grid, 1e-9, 1e-9);
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, mapped(2, 0))), "times 2"));
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, mapped(-1, 0))), "sign"));
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, mapped(std::log(2.0), 0))), "ln 2"));
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, mapped(1 / std::sqrt(3.0), 0))), "1/sqrt(H)"));
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, mapped(1, 0.75))), "plus 0.75"));
  EXPECT_TRUE(patterns(value, doubles({4, 3}, mapped(1.5, 0.75))).empty());
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, std::vector<double>(12, 0))), "never written"));
}

TEST(Hints, ShiftsAndAxes) {
  const Value value = value_of({4, 3}, grid, 1e-9, 1e-9);
  std::vector<double> shifted(grid.begin() + 3, grid.end());
  shifted.insert(shifted.end(), {100, 100, 100});
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, shifted)), "next one along T"));
  std::vector<double> transposed;
  for (std::size_t h = 0; h < 3; ++h) {
    for (std::size_t t = 0; t < 4; ++t) transposed.push_back(grid[t * 3 + h]);
  }
  EXPECT_TRUE(says(patterns(value, doubles({4, 3}, transposed)), "axes T and H are transposed"));
}

TEST(Hints, Places) {
  const Value value = value_of({4, 3}, grid, 1e-9, 1e-9);
  const auto places = [&](const std::vector<std::size_t>& wrong) {
    std::vector<double> actual = grid;
    for (double& x : actual) x += 1e-12;  // right, and not to the last bit
    for (const std::size_t i : wrong) actual[i] += 1;
    TensorVerdict tensor = judge(value, doubles({4, 3}, actual), f64());
    tensor.axes = {"T", "H"};
    return places_of(tensor);
  };
  EXPECT_TRUE(says(places({3, 4, 5}), "wrong is all of row 1"));
  EXPECT_TRUE(says(places({2, 5, 8, 11}), "wrong is all of head 2"));
  EXPECT_TRUE(says(places({6, 7, 8, 9, 10, 11}), "the last 2 of 4"));
  EXPECT_TRUE(says(places({4}), "wrong is all of row 1, head 1"));
  EXPECT_TRUE(says(places({0, 4}), "all that is wrong lies in rows 0 to 1, heads 0 to 1"));
  EXPECT_TRUE(places({}).empty());
  // Elements that are exactly right are hidden ones: the rest of row 1 is all of it.
  std::vector<double> actual = grid;
  actual[3] += 1, actual[4] += 1;
  TensorVerdict tensor = judge(value, doubles({4, 3}, actual), f64());
  tensor.axes = {"T", "H"};
  EXPECT_EQ(places_of(tensor), std::vector<std::string>{"wrong is all of row 1"});
}

// ---- reports ---------------------------------------------------------------------------------------------------

TEST(Reports, HoldTogether) {
  CheckReport report;
  report.op = "y<&\"z";
  report.contract = "ieee_f64";
  TensorVerdict tensor =
      judge(value_of({4, 3}, grid, 1e-9, 1e-10), doubles({4, 3}, mapped(1, 1)), f64());
  tensor.name = "out.y";
  tensor.axes = {"T", "H"};
  report.verdict = tensor.verdict;
  report.tensors = {tensor};
  report.hints = {"a < b"};
  const std::string html = html_of(report), svg = svg_of(report), junit = junit_of(report, false);
  for (const std::string& text : {html, svg, junit}) {
    EXPECT_EQ(text.find("y<&"), std::string::npos);
    EXPECT_NE(text.find("y&lt;&amp;&quot;z"), std::string::npos);
  }
  EXPECT_EQ(html.find("http"), html.find("http://www.w3.org/2000/svg"));
  EXPECT_NE(html.find("a &lt; b"), std::string::npos);
  EXPECT_NE(junit.find("failures=\"1\""), std::string::npos);
  EXPECT_EQ(to_json(report)["tensors"][0]["margin"], to_json(report)["tensors"][0]["margin"]);
  const HeatMap map = heat_map_of(tensor);
  EXPECT_EQ(map.rows, 4);
  EXPECT_EQ(map.columns, 3);
  EXPECT_EQ(map.row_axis, "T");
}

}  // namespace
}  // namespace plumbline
