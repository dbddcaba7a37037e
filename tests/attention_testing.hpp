// tests/attention_testing.hpp: what the tests of mla_attention and merge_attention share.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/merge_attention/merge_attention.hpp"
#include "reference/mla_attention/mla_attention.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::attention_testing {

using support::bools;
using support::f64s;
using support::gradient;
using support::i32s;
using support::Numbers;
using support::output;
using support::put_cot;
using support::put_given;
using support::put_in;
using support::Typed;
using support::working;

inline constexpr double inf = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

inline Result evaluate(const Problem& problem, const char* op = "mla_attention") {
  Evaluation how;
  how.precision = Precision::f192;
  how.backward = !problem.cot.empty();
  return operation(op).evaluate(problem, how);
}
template <class Op = mla_attention::Op> Typed<mp50> typed(const Problem& problem) {
  Evaluation how;
  how.backward = !problem.cot.empty();
  return support::evaluate<Op, mp50>(problem, how);
}
inline void expect_numbers(const Value& found, const Numbers& expected) {
  ASSERT_EQ(found.high.size(), expected.size()) << found.name;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found.high[i])) << found.name << " " << i;
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(found.high[i], expected[i]) << found.name << " " << i;
    } else {
      EXPECT_NEAR(found.high[i], expected[i], 1e-15) << found.name << " " << i;
    }
  }
}
inline void expect_near(const mp50& found, const mp50& expected) {
  EXPECT_GE(support::digits(mp100(found), mp100(expected), mp100(1)), 45)
      << found << ", expected " << expected;
}
inline void expect_error(const std::function<void()>& f, const std::string& where,
                         const std::string& text = "") {
  try {
    f();
    ADD_FAILURE() << "no error at " << where;
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), where) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// One row of one head that sees keys.size() keys of width 1 at query 1, so that the logits are the
// keys.
struct OneRow {
  Array<mp50> key, value, sink;
  Problem problem;
  OneRow(const std::vector<mp50>& keys, const std::vector<Numbers>& values) {
    const auto S = static_cast<std::int64_t>(keys.size()),
               D = static_cast<std::int64_t>(values[0].size());
    key = Array<mp50>({1, S, 1, 1});
    key.values = keys;
    value = Array<mp50>({1, S, 1, D});
    value.values.clear();
    for (const Numbers& row : values)
      value.values.insert(value.values.end(), row.begin(), row.end());
    problem.outputs = {"all"};
    put_in(problem, "query", f64s({1, 1, 1, 1}, {1}));
    put_in(problem, "key", working(key));
    put_in(problem, "value", working(value));
  }
  OneRow(const OneRow&) = delete;
  OneRow& operator=(const OneRow&) = delete;
  void add_sink(const mp50& logit) {
    sink = Array<mp50>({1}, logit);
    put_in(problem, "sink", working(sink));
  }
};

inline mp50 ln(int n) { return log(mp50(n)); }

// Two rows of S = 3, the first of them without a key.
inline Problem half_empty() {
  return support::problem(
      {{"mask", {{"causal", false}}}},
      {{"query", f64s({1, 2, 1, 1}, {2, 1})},
       {"key", f64s({1, 3, 1, 1}, {1, 0, 7})},
       {"value", f64s({1, 3, 1, 2}, {1, 2, 3, 4, 5, 6})},
       {"indices", i32s({1, 2, 3}, {-1, -1, -1, -1, 1, -1})}},
      {{"output", f64s({1, 2, 1, 2}, {1, 1, 1, 1})}, {"lse", f64s({1, 2, 1}, {1, 1})}});
}

inline Problem latent_problem(bool absorbed) {
  Problem p =
      support::problem({{"nope_dim", 1}, {"v_dim", 1}},
                       {{"query", f64s({1, 2, 1, 2}, {1, 1, 1, 2})},
                        {"kv_latent", f64s({1, 2, 2}, {1, 0, 0, 1})},
                        {"k_pe", f64s({1, 2, 1}, {0, 0})},
                        {"wkv_b", f64s({2, 1, 2}, {1, 10, 1, 20})},
                        {"bkv_b", f64s({1, 2}, {3, 5})}},
                       {{"output", f64s({1, 2, 1, 1}, {1, 2})}, {"lse", f64s({1, 2, 1}, {0, 0})}});
  p.schedule["absorbed"] = absorbed;
  return p;
}

}  // namespace plumbline::attention_testing
