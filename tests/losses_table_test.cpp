// tests/losses_table_test.cpp
//
// Every precision against tests/truth/losses_table.json, 50-digit answers of an mpmath script that shares nothing
// with the library (tests/truth/table.py says how to read them). A double literal where a real number is meant hides
// from "mp50 = mp100", not from this. Digits are counted from the tensor's largest finite number.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "reference/csa_indexer_loss/csa_indexer_loss.hpp"
#include "reference/dsa_indexer_loss/dsa_indexer_loss.hpp"
#include "reference/indexer_scores/indexer_scores.hpp"
#include "reference/topk/topk.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline {
namespace {

using support::Typed;

const Json& table() {
  static const Json rows = [] {
    std::ifstream file(std::string(PLUMBLINE_SOURCE_ROOT) + "/tests/truth/losses_table.json");
    return Json::parse(file);
  }();
  return rows;
}

StoredTensor tensor_of(const Json& json) {
  const Shape shape = json["shape"].get<Shape>();
  if (json["dtype"] == "I32") return support::i32s(shape, json["values"].get<support::Integers>());
  if (json["dtype"] == "BOOL") {
    support::Flags flags;
    for (const bool flag : json["values"].get<std::vector<bool>>()) flags.push_back(flag ? 1 : 0);
    return support::bools(shape, flags);
  }
  support::Numbers values;
  for (const Json& text : json["values"])
    values.push_back(std::strtod(text.get<std::string>().c_str(), nullptr));
  return support::f64s(shape, values);
}

Problem problem_of(const Json& row) {
  Problem problem;
  problem.options = row["options"];
  problem.schedule = row["schedule"];
  problem.outputs = {"all"};
  for (const auto& [name, tensor] : row["inputs"].items())
    support::put_in(problem, name, tensor_of(tensor));
  for (const auto& [name, tensor] : row["given"].items())
    support::put_given(problem, name, tensor_of(tensor));
  for (const auto& [name, tensor] : row["cot"].items())
    support::put_cot(problem, name, tensor_of(tensor));
  return problem;
}

template <class T> Typed<T> evaluate(const std::string& op, const Problem& problem) {
  using Run = Typed<T> (*)(const Problem&, Evaluation);
  static const std::map<std::string_view, Run> run = {
      {csa_indexer_loss::Op::name, support::evaluate<csa_indexer_loss::Op, T>},
      {dsa_indexer_loss::Op::name, support::evaluate<dsa_indexer_loss::Op, T>},
      {indexer_scores::Op::name, support::evaluate<indexer_scores::Op, T>},
      {topk::Op::name, support::evaluate<topk::Op, T>},
  };
  return run.at(op)(problem, {.backward = !operation(op).cotangents.empty()});
}

mp100 number(const std::string& text) {
  if (text == "inf") return infinity<mp100>();
  if (text == "-inf") return -infinity<mp100>();
  return mp100(text);
}

template <class T> void compare(const Array<T>& found, const Json& expected,
                                const std::string& what, double digits, double floor) {
  ASSERT_EQ(found.shape, expected["shape"].get<Shape>()) << what;
  mp100 scale = floor;
  for (const Json& text : expected["values"]) {
    const mp100 size = magnitude(number(text));
    if (is_finite(size) && size > scale) scale = size;
  }
  if (scale == 0) scale = 1;
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    const std::string text = expected["values"][i];
    const T& x = found.values[i];
    const std::string where = what + " element " + std::to_string(i);
    if (text == "0") {
      EXPECT_TRUE(x == T(0)) << where << ": " << support::wide(x).str(20)
                             << ", a zero by definition is expected";
      continue;
    }
    const double shared = support::digits(support::wide(x), number(text), scale);
    EXPECT_GE(shared, digits) << where << ": " << support::wide(x).str(52) << ", expected " << text;
  }
}

template <class T> void agrees_with_table(double digits, double floor = 0) {
  ASSERT_GE(table().size(), 30u);
  for (const Json& row : table()) {
    const std::string name = row["name"];
    const Typed<T> found = evaluate<T>(row["op"], problem_of(row));
    std::size_t compared = 0;
    for (const auto& [key, expected] : row["expected"].items()) {
      const bool gradient = key.starts_with("grad.");
      const std::string tensor = key.substr(key.find('.') + 1);
      const auto& arrays = gradient ? found.gradients : found.outputs;
      ++compared;
      if (const auto array = arrays.find(tensor); array != arrays.end()) {
        compare(array->second, expected, name + ": " + key, digits, floor);
      } else if (const auto flags = found.flags.find(tensor); flags != found.flags.end()) {
        EXPECT_EQ(flags->second.shape, expected["shape"].template get<Shape>())
            << name << ": " << key;
        for (std::size_t i = 0; i < flags->second.values.size(); ++i) {
          EXPECT_EQ(flags->second.values[i] != 0, expected["values"][i].template get<bool>())
              << name << ": " << key << " " << i;
        }
      } else if (const auto integers = found.integers.find(tensor);
                 integers != found.integers.end()) {
        EXPECT_EQ(integers->second.values,
                  expected["values"].template get<std::vector<std::int32_t>>())
            << name << ": " << key;
      } else {
        ADD_FAILURE() << name << ": no " << key;
      }
    }
    EXPECT_EQ(compared, found.outputs.size() + found.gradients.size() + found.flags.size() +
                            found.integers.size())
        << name;
  }
}

TEST(Losses, Mp50AgreesWithMpmathTable) { agrees_with_table<mp50>(45); }
TEST(Losses, F192AgreesWithMpmathTable) { agrees_with_table<f192>(45); }
TEST(Losses, Mp100AgreesWithMpmathTable) { agrees_with_table<mp100>(48); }
TEST(Losses, F64AgreesWithMpmathTable) { agrees_with_table<f64>(12.04); }  // 2^-40
// Logits up to 2^8, known to 2^-24 of themselves; a loss of 1e-4 is the difference of terms around 1.
TEST(Losses, F32AgreesWithMpmathTable) { agrees_with_table<f32>(4.2, 1); }  // 2^-14

// Options that change nothing but the precision of a constant do change the answer: the table can see a double
// literal, e.g. the eps of a preset read as the real number 1e-8 instead of the binary64 nearest to it.
TEST(Losses, TableSeesTheLastBitOfADouble) {
  for (const Json& row : table()) {
    if (row["name"] != "no ReLU, no scale, added eps") continue;
    Problem problem = problem_of(row);
    problem.options["target_log"]["eps"] = std::nextafter(1e-8, 1);
    const Typed<mp50> found = evaluate<mp50>(row["op"], problem);
    const mp100 expected = number(row["expected"]["out.loss"]["values"][0]);
    const double shared =
        support::digits(support::wide(found.out("loss").values[0]), expected, expected);
    EXPECT_GT(shared, 15);
    EXPECT_LT(shared, 40);
    return;
  }
  FAIL() << "the case is not in the table";
}

}  // namespace
}  // namespace plumbline
