// mla_attention and merge_attention where the answer is known: by hand, or because somebody got it wrong in public.
// Field faults carry the names of their rows in the collection (F1: a sink gradient that is not returned, A6: an all
// -1 row, ...). Inputs that are logarithms are handed over in the working precision.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/attention/row_heads.hpp"
#include "reference/merge_attention/merge_attention.hpp"
#include "reference/mla_attention/mla_attention.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline {
namespace {

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

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Result evaluate(const Problem& problem, const char* op = "mla_attention") {
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
void expect_numbers(const Value& found, const Numbers& expected) {
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
void expect_near(const mp50& found, const mp50& expected) {
  EXPECT_GE(support::digits(mp100(found), mp100(expected), mp100(1)), 45) << found << ", expected " << expected;
}
void expect_error(const std::function<void()>& f, const std::string& where, const std::string& text = "") {
  try {
    f();
    ADD_FAILURE() << "no error at " << where;
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), where) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// One row of one head that sees keys.size() keys of width 1 at query 1, so that the logits are the keys.
struct OneRow {
  Array<mp50> key, value, sink;
  Problem problem;
  OneRow(const std::vector<mp50>& keys, const std::vector<Numbers>& values) {
    const auto S = static_cast<std::int64_t>(keys.size()), D = static_cast<std::int64_t>(values[0].size());
    key = Array<mp50>({1, S, 1, 1});
    key.values = keys;
    value = Array<mp50>({1, S, 1, D});
    value.values.clear();
    for (const Numbers& row : values) value.values.insert(value.values.end(), row.begin(), row.end());
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

mp50 ln(int n) { return log(mp50(n)); }

TEST(MlaAttention, F1SinkGradientIsReturned) {
  Problem p = support::problem({}, {{"query", f64s({1, 1, 1, 1}, {0})}, {"key", f64s({1, 1, 1, 1}, {0})},
                                    {"value", f64s({1, 1, 1, 1}, {1})}, {"sink", f64s({1}, {0})}},
                               {{"output", f64s({1, 1, 1, 1}, {1})}});
  const Result r = evaluate(p);
  expect_numbers(output(r, "output"), {0.5});  // F2: not 1
  expect_numbers(gradient(r, "sink"), {-0.25});
  expect_numbers(gradient(r, "value"), {0.5});
  expect_numbers(output(r, "max_logit"), {0});
}

TEST(MlaAttention, F6SinkIsATermOfTheDenominator) {
  OneRow row({mp50(0), ln(2)}, {{1, 0}, {0, 1}});
  row.add_sink(ln(5));
  const Typed<mp50> r = typed(row.problem);
  expect_near(r.out("output").values[0], mp50(1) / 8);
  expect_near(r.out("output").values[1], mp50(2) / 8);
  // out·sigmoid(lse − sink): the other way to write it
  OneRow bare({mp50(0), ln(2)}, {{1, 0}, {0, 1}});
  const Typed<mp50> without = typed(bare.problem);
  const mp50 sigmoid = 1 / (1 + exp(mp50(ln(5) - without.out("lse").values[0])));
  for (std::size_t d = 0; d < 2; ++d) expect_near(mp50(without.out("output").values[d] * sigmoid), r.out("output").values[d]);
}

TEST(MlaAttention, D13H1LseBasesAndTheSink) {
  for (const bool base_two : {false, true}) {
    for (const bool include : {false, true}) {
      for (const bool sink : {false, true}) {
        OneRow row({mp50(0), ln(2)}, {{1}, {1}});
        if (sink) row.add_sink(ln(5));
        if (base_two) row.problem.options["lse_base"] = 2;
        row.problem.options["lse_includes_sink"] = include;
        const mp50 expected = ln(include && sink ? 8 : 3) / (base_two ? ln(2) : mp50(1));
        expect_near(typed(row.problem).out("lse").values[0], expected);
      }
    }
  }
  OneRow row({mp50(0), ln(2)}, {{1}, {1}});
  row.add_sink(ln(5));
  row.problem.options = {{"lse_base", "2"}, {"lse_includes_sink", true}};
  expect_near(typed(row.problem).out("lse").values[0], mp50(3));
}

TEST(MlaAttention, C10DuplicatesAreAPolicy) {
  const auto problem = [](const char* policy) {
    Problem p = support::problem({{"mask", {{"causal", false}}}},
                                 {{"query", f64s({1, 1, 1, 1}, {0})}, {"key", f64s({1, 2, 1, 1}, {3, 5})},
                                  {"value", f64s({1, 2, 1, 1}, {1, 0})}, {"indices", i32s({1, 1, 3}, {0, 0, 1})}},
                                 {{"output", f64s({1, 1, 1, 1}, {1})}, {"lse", f64s({1, 1, 1}, {3})}});
    if (policy != nullptr) p.options["duplicates"] = policy;
    return p;
  };
  const Result twice = evaluate(problem("multiset")), once = evaluate(problem("set"));
  expect_numbers(output(twice, "output"), {2.0 / 3});
  expect_numbers(output(once, "output"), {0.5});
  expect_numbers(output(twice, "lse"), {std::log(3)});
  expect_numbers(output(once, "lse"), {std::log(2)});
  // dc = p (v − output) + 3 p with p = (2/3, 1/3) and (1/2, 1/2); dq = Σ dc k
  expect_numbers(gradient(twice, "query"), {3 * (2.0 / 9 + 2) + 5 * (-2.0 / 9 + 1)});
  expect_numbers(gradient(twice, "value"), {2.0 / 3, 1.0 / 3});
  expect_numbers(gradient(once, "query"), {3 * (0.25 + 1.5) + 5 * (-0.25 + 1.5)});
  expect_numbers(gradient(once, "value"), {0.5, 0.5});
  for (const char* policy : {static_cast<const char*>(nullptr), "error"}) {
    expect_error([&] { evaluate(problem(policy)); }, "in.indices[0, 0, 1]", "a second time");
  }
}

// Two rows of S = 3, the first of them without a key.
Problem half_empty() {
  return support::problem({{"mask", {{"causal", false}}}},
                          {{"query", f64s({1, 2, 1, 1}, {2, 1})}, {"key", f64s({1, 3, 1, 1}, {1, 0, 7})},
                           {"value", f64s({1, 3, 1, 2}, {1, 2, 3, 4, 5, 6})},
                           {"indices", i32s({1, 2, 3}, {-1, -1, -1, -1, 1, -1})}},
                          {{"output", f64s({1, 2, 1, 2}, {1, 1, 1, 1})}, {"lse", f64s({1, 2, 1}, {1, 1})}});
}

TEST(MlaAttention, A6RowOfEmptySlots) {
  const Result r = evaluate(half_empty());
  expect_numbers(output(r, "output"), {0, 0, 3, 4});
  expect_numbers(output(r, "lse"), {-inf, 0});
  expect_numbers(output(r, "max_logit"), {-inf, 0});
  expect_numbers(gradient(r, "query"), {0, 0});
  expect_numbers(gradient(r, "key"), {0, 1, 0});
  expect_numbers(gradient(r, "value"), {0, 0, 1, 1, 0, 0});
}

TEST(MlaAttention, A8SavedTensorsOfEmptyRowsAreNotRead) {
  Problem p = half_empty();
  put_given(p, "output", f64s({1, 2, 1, 2}, {nan, nan, 3, 4}));
  put_given(p, "lse", f64s({1, 2, 1}, {0, 0}));
  const Result r = evaluate(p), clean = evaluate(half_empty());
  EXPECT_EQ(support::difference(r, clean), "");
  put_given(p, "lse", f64s({1, 2, 1}, {nan, 0}));
  EXPECT_EQ(support::difference(evaluate(p), clean), "");
}

TEST(MlaAttention, A12EmptyLseIsAConvention) {
  const auto lse = [](const char* empty, bool include, const std::optional<double>& sink) {
    Problem p = half_empty();
    p.options["lse_base"] = 2;
    p.options["lse_includes_sink"] = include;
    if (empty != nullptr) p.options["empty_lse"] = empty;
    if (sink) put_in(p, "sink", f64s({1}, {*sink}));
    const Result r = evaluate(p);
    const double d = sink ? gradient(r, "sink").high[0] : 0;
    return std::pair(output(r, "lse").high[0], d);
  };
  EXPECT_EQ(lse(nullptr, false, 1).first, -inf);
  EXPECT_EQ(lse("+inf", false, 1).first, inf);
  EXPECT_EQ(lse("0", false, std::nullopt).first, 0);
  EXPECT_EQ(lse(nullptr, true, std::nullopt).first, -inf);
  EXPECT_NEAR(lse(nullptr, true, 1).first, 1 / std::log(2), 1e-15);
  EXPECT_EQ(lse("0", true, 1).first, 0);
  EXPECT_EQ(lse("-inf", true, 1).first, -inf);
  EXPECT_EQ(lse(nullptr, true, -inf).first, -inf);
  EXPECT_EQ(lse(nullptr, true, inf).first, inf);
  // A counted sink is all of an empty row's lse; a named value is a constant.
  EXPECT_NEAR(lse(nullptr, true, 1).second - lse("0", true, 1).second, 1 / std::log(2), 1e-15);
  EXPECT_EQ(lse(nullptr, false, 1).second, lse("0", false, 1).second);
}

TEST(MlaAttention, A13MaskedRowAddsNothingToSharedWeights) {
  const auto weights = [](std::int64_t rows, bool absorbed) {
    Numbers query = {1, 2, 3, nan, nan, nan}, latent = {1, 2, nan, nan}, pe = {5, nan}, cot = {1, nan};
    Problem p = support::problem({{"nope_dim", 2}, {"v_dim", 1}},
                                 {{"query", f64s({rows, 1, 1, 3}, {query.begin(), query.begin() + rows * 3})},
                                  {"kv_latent", f64s({rows, 1, 2}, {latent.begin(), latent.begin() + rows * 2})},
                                  {"k_pe", f64s({rows, 1, 1}, {pe.begin(), pe.begin() + rows})},
                                  {"wkv_b", f64s({2, 1, 3}, {1, 2, 3, 4, 5, 6})}},
                                 {{"output", f64s({rows, 1, 1, 1}, {cot.begin(), cot.begin() + rows})}});
    if (rows == 2) put_in(p, "row_mask", bools({2, 1}, "10"));
    p.schedule["absorbed"] = absorbed;
    return gradient(evaluate(p), "wkv_b").high;
  };
  for (const bool absorbed : {false, true}) EXPECT_EQ(weights(2, absorbed), weights(1, absorbed));
}

TEST(MlaAttention, A15EveryPathHasTheSameEmptyRows) {
  const Result whole = evaluate(half_empty());
  for (const Json& schedule : {Json{{"key_block", 1}}, Json{{"key_block", 2}, {"head_chunk", 1}}}) {
    Problem p = half_empty();
    p.schedule = schedule;
    EXPECT_EQ(support::difference(evaluate(p), whole), "") << schedule;
  }
}

TEST(MlaAttention, G1G2EmptySlotIsNoAddress) {
  Problem p = support::problem({{"mask", {{"causal", false}}}},
                               {{"query", f64s({1, 1, 1, 1}, {1})}, {"key", f64s({1, 3, 1, 1}, {nan, 2, inf})},
                                {"value", f64s({1, 3, 1, 1}, {nan, 4, nan})}, {"indices", i32s({1, 1, 4}, {-1, 1, -1, -1})}},
                               {{"output", f64s({1, 1, 1, 1}, {1})}});
  const Result r = evaluate(p);
  expect_numbers(output(r, "output"), {4});
  expect_numbers(gradient(r, "value"), {0, 1, 0});
  expect_numbers(gradient(r, "key"), {0, 0, 0});
}

TEST(MlaAttention, G3IndexOutOfRangeIsAnError) {
  for (const int index : {3, -2}) {
    Problem p = half_empty();
    put_in(p, "indices", i32s({1, 2, 3}, {-1, -1, -1, -1, index, -1}));
    expect_error([&] { evaluate(p); }, "in.indices[0, 1, 1]", "-1 or a key below 3");
  }
}

TEST(MlaAttention, G6TwoQueriesShareAKey) {
  Problem p = support::problem({{"mask", {{"causal", false}}}},
                               {{"query", f64s({1, 2, 1, 1}, {1, 1})}, {"key", f64s({1, 2, 1, 1}, {3, 4})},
                                {"value", f64s({1, 2, 1, 1}, {1, 1})}, {"selected", bools({1, 2, 2}, "10 10")}},
                               {{"output", f64s({1, 2, 1, 1}, {2, 5})}, {"lse", f64s({1, 2, 1}, {1, 10})}});
  const Result r = evaluate(p);
  expect_numbers(gradient(r, "value"), {7, 0});
  expect_numbers(gradient(r, "key"), {11, 0});
}

TEST(MlaAttention, InfiniteSinks) {
  const auto row = [](double sink, bool include) {
    Problem p = support::problem({{"lse_includes_sink", include}},
                                 {{"query", f64s({1, 1, 1, 1}, {1})}, {"key", f64s({1, 1, 1, 1}, {2})},
                                  {"value", f64s({1, 1, 1, 1}, {3})}, {"sink", f64s({1}, {sink})}},
                                 {{"output", f64s({1, 1, 1, 1}, {1})}, {"lse", f64s({1, 1, 1}, {7})}});
    return evaluate(p);
  };
  const Result none = row(-inf, true);
  expect_numbers(output(none, "output"), {3});
  expect_numbers(output(none, "lse"), {2});
  expect_numbers(gradient(none, "query"), {14});
  expect_numbers(gradient(none, "sink"), {0});
  const Result all = row(inf, false);  // an lse without the sink stays finite and keeps its gradient
  expect_numbers(output(all, "output"), {0});
  expect_numbers(output(all, "lse"), {2});
  expect_numbers(output(all, "max_logit"), {2});
  expect_numbers(gradient(all, "query"), {14});
  expect_numbers(gradient(all, "value"), {0});
  expect_numbers(gradient(all, "sink"), {0});
  const Result counted = row(inf, true);
  expect_numbers(output(counted, "lse"), {inf});
  expect_numbers(gradient(counted, "query"), {0});
  expect_numbers(gradient(counted, "sink"), {0});
}

// A sink so large that exp(c − sink) vanishes in double leaves the lse without it untouched, on every path.
TEST(MlaAttention, LargeSinkDoesNotSwallowTheLse) {
  for (const int block : {0, 1}) {
    Problem p = support::problem({}, {{"query", f64s({1, 1, 1, 1}, {1})}, {"key", f64s({1, 1, 1, 1}, {2})},
                                      {"value", f64s({1, 1, 1, 1}, {3})}, {"sink", f64s({1}, {5000})}});
    p.schedule["key_block"] = block;
    Evaluation how;
    how.precision = Precision::f64;
    expect_numbers(output(operation("mla_attention").evaluate(p, how), "lse"), {2});
  }
}

TEST(MlaAttention, ValueInTheKeySendsItsGradientThere) {
  Problem p = support::problem({{"v_dim", 1}}, {{"query", f64s({1, 1, 1, 2}, {5, 6})}, {"key", f64s({1, 1, 1, 2}, {2, 3})}},
                               {{"output", f64s({1, 1, 1, 1}, {4})}, {"lse", f64s({1, 1, 1}, {1})}});
  const Result r = evaluate(p);
  expect_numbers(output(r, "output"), {2});
  expect_numbers(gradient(r, "key"), {5 + 4, 6});
}

TEST(MlaAttention, RowsThatAreNotRealAreNotRead) {
  Problem p = half_empty();
  put_in(p, "row_mask", bools({1, 2}, "10"));
  put_in(p, "query", f64s({1, 2, 1, 1}, {2, nan}));
  put_in(p, "indices", i32s({1, 2, 3}, {-1, -1, -1, 99, 1, 1}));
  put_in(p, "sink", f64s({1}, {3}));
  p.options["lse_includes_sink"] = true;
  const Result r = evaluate(p);
  expect_numbers(output(r, "output"), {0, 0, 0, 0});
  expect_numbers(output(r, "lse"), {3, 3});
  expect_numbers(output(r, "max_logit"), {-inf, -inf});
  expect_numbers(gradient(r, "sink"), {1});  // of row 0 alone: row 1's lse is a constant
}

// ---- latent form ------------------------------------------------------------------------------------------------

Problem latent_problem(bool absorbed) {
  Problem p = support::problem(
      {{"nope_dim", 1}, {"v_dim", 1}},
      {{"query", f64s({1, 2, 1, 2}, {1, 1, 1, 2})}, {"kv_latent", f64s({1, 2, 2}, {1, 0, 0, 1})},
       {"k_pe", f64s({1, 2, 1}, {0, 0})}, {"wkv_b", f64s({2, 1, 2}, {1, 10, 1, 20})}, {"bkv_b", f64s({1, 2}, {3, 5})}},
      {{"output", f64s({1, 2, 1, 1}, {1, 2})}, {"lse", f64s({1, 2, 1}, {0, 0})}});
  p.schedule["absorbed"] = absorbed;
  return p;
}

// Both keys are 1 + 3 = 4 wide open, so row 1 weighs them 1/2 each: values 15 and 25, output 20.
TEST(MlaAttention, LatentFormByHand) {
  for (const bool absorbed : {false, true}) {
    const Result r = evaluate(latent_problem(absorbed));
    expect_numbers(output(r, "output"), {15, 20});
    expect_numbers(output(r, "lse"), {4, 4 + std::log(2)});
    // row 1: dc = 1/2·2·(15 − 20), 1/2·2·(25 − 20) = −5, 5; row 0: 0
    expect_numbers(gradient(r, "query"), {0, 0, 0, 0});
    expect_numbers(gradient(r, "k_pe"), {-10, 10});
    // p g W_V + dc q_nope W_K
    expect_numbers(gradient(r, "kv_latent"), {10 + 10 - 5, 20 + 20 - 5, 10 + 5, 20 + 5});
    expect_numbers(gradient(r, "wkv_b"), {-5, 1 + 1, 5, 1});
    expect_numbers(gradient(r, "bkv_b"), {0, 3});
  }
}

// ---- given --------------------------------------------------------------------------------------------------------

TEST(MlaAttention, BackwardUsesTheSavedTensorsItIsGiven) {
  OneRow row({mp50(0), mp50(0)}, {{1}, {0}});
  put_cot(row.problem, "output", f64s({1, 1, 1, 1}, {1}));
  put_given(row.problem, "output", f64s({1, 1, 1, 1}, {0.25}));  // not what it is: 0.5
  Typed<mp50> r = typed(row.problem);
  expect_near(r.out("output").values[0], mp50(1) / 4);
  expect_near(r.grad("key").values[0], mp50(3) / 8);  // 1/2 (1 − 1/4)
  expect_near(r.grad("key").values[1], mp50(-1) / 8);
  Array<mp50> lse({1, 1, 1}, mp50(ln(4) / ln(2)));  // p = 1/4 each
  put_given(row.problem, "lse", working(lse));
  row.problem.options["lse_base"] = 2;
  r = typed(row.problem);
  expect_near(r.grad("key").values[0], mp50(3) / 16);
  expect_near(r.grad("value").values[0], mp50(1) / 4);
  // Where lse does not count the sink, p = exp(c − ln(e^lse + e^sink)) = 1/8.
  row.add_sink(ln(4));
  r = typed(row.problem);
  expect_near(r.grad("value").values[0], mp50(1) / 8);
  expect_near(r.grad("sink").values[0], mp50(-1) / 8);  // 1/2·(−1/4)
}

TEST(MlaAttention, GivenLseMustBeANumber) {
  for (const double lse : {nan, inf, -inf}) {
    Problem p = half_empty();
    put_given(p, "lse", f64s({1, 2, 1}, {0, lse}));
    expect_error([&] { evaluate(p); }, "given.lse[0, 1, 0]");
  }
}

// ---- errors ---------------------------------------------------------------------------------------------------------

TEST(MlaAttention, Errors) {
  const auto changed = [](const std::function<void(Problem&)>& change) {
    return [change] {
      Problem p = half_empty();
      change(p);
      evaluate(p);
    };
  };
  expect_error(changed([](Problem& p) { p.in.erase("key"); }), "in.key");
  expect_error(changed([](Problem& p) { p.in.erase("value"); }), "option v_dim");
  expect_error(changed([](Problem& p) { p.in.erase("value"), p.options["v_dim"] = 2; }), "option v_dim", "at most the width");
  expect_error(changed([](Problem& p) { put_in(p, "value", f64s({1, 3, 2, 1}, Numbers(6, 0))); }), "in.value", "Hk = 1");
  expect_error(changed([](Problem& p) { put_in(p, "k_pe", f64s({1, 3, 1}, {0, 0, 0})); }), "in.key", "none");
  expect_error(changed([](Problem& p) { put_in(p, "selected", bools({1, 2, 3}, "111111")); }), "in.indices", "one of them");
  expect_error(changed([](Problem& p) { p.schedule["absorbed"] = true; }), "schedule.absorbed");
  expect_error(changed([](Problem& p) { p.schedule["barrier"] = true; }), "schedule.barrier");
  expect_error(changed([](Problem& p) { p.options["lse_base"] = 10; }), "option lse_base", "one of e, 2");
  expect_error(changed([](Problem& p) { p.cot.clear(), put_cot(p, "output", f64s({1, 2, 1, 1}, {1, 1})); }), "cot.output");
  expect_error(changed([](Problem& p) { put_in(p, "sink", f64s({1}, {nan})); }), "in.sink[0]", "NaN");
  expect_error(changed([](Problem& p) { put_in(p, "key", f64s({1, 3, 1, 1}, {1, nan, 7})); }), "in.key[0, 1, 0, 0]", "NaN");
  expect_error(changed([](Problem& p) {
                 put_in(p, "query", f64s({1, 2, 3, 1}, Numbers(6, 0)));
                 put_in(p, "key", f64s({1, 3, 2, 1}, Numbers(6, 0)));
                 put_in(p, "value", f64s({1, 3, 2, 1}, Numbers(6, 0)));
                 p.cot.clear();
               }), "in.key", "a divisor of H = 3");
  expect_error(changed([](Problem& p) { p.options["mask"]["causal"] = true, p.options["strict_selection"] = true;
                                        put_in(p, "indices", i32s({1, 2, 1}, {2, 1})); }),
               "in.indices[0, 0, 0]", "strict_selection");
  expect_error([] { Problem p = latent_problem(false); p.options.erase("nope_dim"); evaluate(p); }, "option nope_dim");
  expect_error([] { Problem p = latent_problem(false); p.in.erase("wkv_b"); evaluate(p); }, "in.wkv_b");
  expect_error([] { Problem p = latent_problem(true); put_in(p, "k_pe", f64s({1, 2, 2}, {0, 0, 0, 0})); evaluate(p); },
               "in.query", "nope_dim + dr = 1 + 2");
}

// An invisible key that is selected is dropped unless the selection is strict; a duplicate counts after that.
TEST(MlaAttention, InvisibleSelectionsAreDropped) {
  Problem p = half_empty();
  p.options["mask"]["causal"] = true;  // rows stand at tokens 1 and 2
  put_in(p, "indices", i32s({1, 2, 3}, {2, 0, 2, 2, -1, -1}));
  expect_numbers(output(evaluate(p), "output"), {1, 2, 5, 6});
}

// ---- work and memory --------------------------------------------------------------------------------------------------

struct Counted {
  Work forward, backward;
};
Counted count_work(std::int64_t S, std::int64_t H, const Json& schedule, bool given = false) {
  const std::int64_t D = 3, Dv = 2;
  Problem p = support::problem({{"mask", {{"causal", false}}}},
                               {{"query", f64s({1, 1, H, D}, Numbers(static_cast<std::size_t>(H * D), 0.5))},
                                {"key", f64s({1, S, 1, D}, Numbers(static_cast<std::size_t>(S * D), 0.5))},
                                {"value", f64s({1, S, 1, Dv}, Numbers(static_cast<std::size_t>(S * Dv), 0.5))}},
                               {{"output", f64s({1, 1, H, Dv}, Numbers(static_cast<std::size_t>(H * Dv), 1))}});
  p.outputs.clear();
  p.schedule = schedule;
  if (given) {
    put_given(p, "lse", f64s({1, 1, H}, Numbers(static_cast<std::size_t>(H), 2)));
    put_given(p, "output", f64s({1, 1, H, Dv}, Numbers(static_cast<std::size_t>(H * Dv), 0.5)));
  }
  Evaluation how;
  how.precision = Precision::f64;
  how.backward = true;
  const Result r = operation("mla_attention").evaluate(p, how);
  return {r.forward, r.backward};
}

// docs/ops/mla_attention.md, "Schedules"
TEST(MlaAttention, WorkAndMemoryFollowTheFormulas) {
  const std::int64_t H = 5, D = 3, Dv = 2;
  for (const std::int64_t S : {7, 40}) {
    for (const std::int64_t block : {0, 4}) {
      for (const std::int64_t chunk : {0, 2}) {
        const Counted found = count_work(S, H, {{"key_block", block}, {"head_chunk", chunk}});
        const std::int64_t h = chunk == 0 ? H : chunk, n = block == 0 ? S : block, chunks = (H + h - 1) / h;
        const auto numbers = [](std::int64_t count) { return count * static_cast<std::int64_t>(sizeof(double)); };
        const std::int64_t states = h * static_cast<std::int64_t>(sizeof(attention::HeadState<double>));
        EXPECT_EQ(found.forward.evaluations, S * H);
        EXPECT_EQ(found.forward.normaliser_evaluations, 0);
        EXPECT_EQ(found.forward.rows_fetched, 2 * S * chunks);
        EXPECT_EQ(found.forward.peak_bytes, numbers(h * (D + n) + D + Dv) + states);
        EXPECT_EQ(found.backward.evaluations, (block == 0 ? 1 : 2) * S * H);
        EXPECT_EQ(found.backward.peak_bytes, numbers(h * (D + 2 * Dv + 2 + n) + D + Dv) + states);
        const Counted saved = count_work(S, H, {{"key_block", block}, {"head_chunk", chunk}}, true);
        EXPECT_EQ(saved.backward.evaluations, S * H);
        EXPECT_EQ(saved.backward.normaliser_evaluations, 0);
      }
    }
  }
}

TEST(MlaAttention, AbsorbedExpandsNothing) {
  const std::int64_t S = 64, H = 4, R = 3, dn = 2, dr = 1, dv = 5;
  const auto work = [&](bool absorbed) {
    const auto fill = [](const Shape& shape) {
      return f64s(shape, Numbers(static_cast<std::size_t>(count_of(shape)), 0.5));
    };
    Problem p = support::problem({{"nope_dim", dn}, {"v_dim", dv}},
                                 {{"query", fill({1, 1, H, dn + dr})}, {"kv_latent", fill({1, S, R})},
                                  {"k_pe", fill({1, S, dr})}, {"wkv_b", fill({R, H, dn + dv})}});
    p.schedule = {{"absorbed", absorbed}, {"key_block", 4}};
    Evaluation how;
    how.precision = Precision::f64;
    return operation("mla_attention").evaluate(p, how).forward;
  };
  const std::int64_t expanded = S * H * (dn + dv) * 8;
  EXPECT_GT(work(false).peak_bytes, expanded);
  EXPECT_LT(work(true).peak_bytes, expanded / 2);
  EXPECT_EQ(work(true).rows_fetched, 3 * S);                  // latent and k_pe, the latent again as value
  EXPECT_EQ(work(false).rows_fetched, S + 2 * S * H + S);     // latent; each head's key and value; k_pe
}

// ---- merge_attention --------------------------------------------------------------------------------------------------

Problem merge_problem(const Json& options, const Numbers& lse, const Numbers& outputs) {
  const auto P = static_cast<std::int64_t>(lse.size());
  return support::problem(options, {{"outputs", f64s({P, 1, 1, 1, 1}, outputs)}, {"lse", f64s({P, 1, 1, 1}, lse)}},
                          {{"output", f64s({1, 1, 1, 1}, {1})}, {"lse", f64s({1, 1, 1}, {2})}});
}

// Two parts of masses e^0 = 1 and e^ln3 = 3, in base 2: 0 and log2 3.
TEST(MergeAttention, ByHand) {
  Array<mp50> lse({2, 1, 1, 1}, mp50(0));
  lse.values[1] = ln(3) / ln(2);
  Problem p = merge_problem({{"lse_base", 2}}, {0, 0}, {8, 4});
  put_in(p, "lse", working(lse));
  Typed<mp50> r = typed<merge_attention::Op>(p);
  expect_near(r.out("output").values[0], mp50(5));
  expect_near(r.out("lse").values[0], mp50(2));
  expect_near(r.grad("outputs").values[0], mp50(1) / 4);
  expect_near(r.grad("outputs").values[1], mp50(3) / 4);
  // d lse_p = ln 2·w_p (g·o_p − g·o) + 2 w_p
  expect_near(r.grad("lse").values[0], ln(2) * 3 / 4 + mp50(1) / 2);
  expect_near(r.grad("lse").values[1], ln(2) * -3 / 4 + mp50(3) / 2);

  Array<mp50> sink({1}, ln(4));
  put_in(p, "sink", working(sink));
  p.options["lse_includes_sink"] = true;
  r = typed<merge_attention::Op>(p);
  expect_near(r.out("output").values[0], mp50(5) / 2);
  expect_near(r.out("lse").values[0], mp50(3));
  expect_near(r.grad("sink").values[0], mp50(2 / ln(2) - mp50(5) / 2) / 2);
}

TEST(MergeAttention, A12PartWithoutKeysIsNotRead) {
  for (const bool plus : {false, true}) {
    const double empty = plus ? inf : -inf;
    Json options = Json::object();
    if (plus) options["empty_lse"] = "+inf";
    const Result r = evaluate(merge_problem(options, {empty, 1, empty}, {nan, 6, inf}), "merge_attention");
    expect_numbers(output(r, "output"), {6});
    expect_numbers(output(r, "lse"), {1});
    expect_numbers(gradient(r, "outputs"), {0, 1, 0});
    expect_numbers(gradient(r, "lse"), {0, 2, 0});
    const Result none = evaluate(merge_problem(options, {empty, empty}, {nan, nan}), "merge_attention");
    expect_numbers(output(none, "output"), {0});
    expect_numbers(output(none, "lse"), {empty});
    expect_numbers(gradient(none, "lse"), {0, 0});
    // The other infinity is somebody else's convention.
    expect_error([&] { evaluate(merge_problem(options, {-empty, 1}, {0, 6}), "merge_attention"); }, "in.lse[0, 0, 0, 0]",
                 "empty_lse");
  }
  expect_error([] { evaluate(merge_problem({{"empty_lse", 0}}, {0, 1}, {0, 6}), "merge_attention"); }, "option empty_lse");
}

TEST(MergeAttention, InfiniteSinks) {
  Problem p = merge_problem({}, {1, 1}, {2, 6});
  put_in(p, "sink", f64s({1}, {inf}));
  const Result all = evaluate(p, "merge_attention");
  expect_numbers(output(all, "output"), {0});
  expect_numbers(output(all, "lse"), {1 + std::log(2)});
  expect_numbers(gradient(all, "lse"), {1, 1});
  expect_numbers(gradient(all, "sink"), {0});
  put_in(p, "sink", f64s({1}, {-inf}));
  expect_numbers(output(evaluate(p, "merge_attention"), "output"), {4});
}

}  // namespace
}  // namespace plumbline
