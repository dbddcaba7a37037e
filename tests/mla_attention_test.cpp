// mla_attention where the answer is known: by hand, or because somebody got it wrong in public.
// Field faults carry the names of their rows in the collection (F1: a sink gradient that is not
// returned, A6: an all -1 row, ...). Inputs that are logarithms are handed over in the working
// precision.
#include "tests/attention_testing.hpp"

namespace plumbline {
namespace {

using namespace attention_testing;

TEST(MlaAttention, F1SinkGradientIsReturned) {
  Problem p = support::problem(Json::object(),
                               {{"query", f64s({1, 1, 1, 1}, {0})},
                                {"key", f64s({1, 1, 1, 1}, {0})},
                                {"value", f64s({1, 1, 1, 1}, {1})},
                                {"sink", f64s({1}, {0})}},
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
  for (std::size_t d = 0; d < 2; ++d)
    expect_near(mp50(without.out("output").values[d] * sigmoid), r.out("output").values[d]);
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
    Problem p =
        support::problem({{"mask", {{"causal", false}}}},
                         {{"query", f64s({1, 1, 1, 1}, {0})},
                          {"key", f64s({1, 2, 1, 1}, {3, 5})},
                          {"value", f64s({1, 2, 1, 1}, {1, 0})},
                          {"indices", i32s({1, 1, 3}, {0, 0, 1})}},
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
  p.cot.erase("lse");  // a given lse is a constant
  const Result clean = evaluate(p);
  put_given(p, "output", f64s({1, 2, 1, 2}, {nan, nan, 3, 4}));
  put_given(p, "lse", f64s({1, 2, 1}, {0, 0}));
  const Result r = evaluate(p);
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
    Numbers query = {1, 2, 3, nan, nan, nan}, latent = {1, 2, nan, nan}, pe = {5, nan},
            cot = {1, nan};
    Problem p = support::problem(
        {{"nope_dim", 2}, {"v_dim", 1}},
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
                               {{"query", f64s({1, 1, 1, 1}, {1})},
                                {"key", f64s({1, 3, 1, 1}, {nan, 2, inf})},
                                {"value", f64s({1, 3, 1, 1}, {nan, 4, nan})},
                                {"indices", i32s({1, 1, 4}, {-1, 1, -1, -1})}},
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
  Problem p =
      support::problem({{"mask", {{"causal", false}}}},
                       {{"query", f64s({1, 2, 1, 1}, {1, 1})},
                        {"key", f64s({1, 2, 1, 1}, {3, 4})},
                        {"value", f64s({1, 2, 1, 1}, {1, 1})},
                        {"selected", bools({1, 2, 2}, "10 10")}},
                       {{"output", f64s({1, 2, 1, 1}, {2, 5})}, {"lse", f64s({1, 2, 1}, {1, 10})}});
  const Result r = evaluate(p);
  expect_numbers(gradient(r, "value"), {7, 0});
  expect_numbers(gradient(r, "key"), {11, 0});
}

TEST(MlaAttention, InfiniteSinks) {
  const auto row = [](double sink, bool include) {
    Problem p =
        support::problem({{"lse_includes_sink", include}},
                         {{"query", f64s({1, 1, 1, 1}, {1})},
                          {"key", f64s({1, 1, 1, 1}, {2})},
                          {"value", f64s({1, 1, 1, 1}, {3})},
                          {"sink", f64s({1}, {sink})}},
                         {{"output", f64s({1, 1, 1, 1}, {1})}, {"lse", f64s({1, 1, 1}, {7})}});
    return evaluate(p);
  };
  const Result none = row(-inf, true);
  expect_numbers(output(none, "output"), {3});
  expect_numbers(output(none, "lse"), {2});
  expect_numbers(gradient(none, "query"), {14});
  expect_numbers(gradient(none, "sink"), {0});
  const Result all =
      row(inf, false);  // an lse without the sink stays finite and keeps its gradient
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

// nonfinite "allow": one +inf logit takes all the mass, two have no limit, NaN is NaN; in two passes
// and online alike.
TEST(MlaAttention, InfiniteLogitsFollowTheLimits) {
  for (const int block : {0, 1, 2}) {
    const auto row = [&](const Numbers& keys) {
      Problem p = support::problem({{"nonfinite", "allow"}, {"mask", {{"causal", false}}}},
                                   {{"query", f64s({1, 1, 1, 1}, {1})},
                                    {"key", f64s({1, 3, 1, 1}, keys)},
                                    {"value", f64s({1, 3, 1, 1}, {1, 2, 4})}});
      p.schedule["key_block"] = block;
      return evaluate(p);
    };
    for (const double other : {0.0, -inf}) {
      const Result one = row({other, inf, 1});
      expect_numbers(output(one, "output"), {2});
      expect_numbers(output(one, "lse"), {inf});
      expect_numbers(output(one, "max_logit"), {inf});
    }
    expect_numbers(output(row({inf, 0, inf}), "output"), {nan});
    expect_numbers(output(row({0, nan, 1}), "output"), {nan});
    expect_numbers(output(row({0, nan, 1}), "lse"), {nan});
    expect_numbers(output(row({-inf, -inf, 3}), "output"), {4});
  }
}

// A sink so large that exp(c − sink) vanishes in double leaves the lse without it untouched, on
// every path.
TEST(MlaAttention, LargeSinkDoesNotSwallowTheLse) {
  for (const int block : {0, 1}) {
    Problem p = support::problem(Json::object(), {{"query", f64s({1, 1, 1, 1}, {1})},
                                                  {"key", f64s({1, 1, 1, 1}, {2})},
                                                  {"value", f64s({1, 1, 1, 1}, {3})},
                                                  {"sink", f64s({1}, {5000})}});
    p.schedule["key_block"] = block;
    Evaluation how;
    how.precision = Precision::f64;
    expect_numbers(output(operation("mla_attention").evaluate(p, how), "lse"), {2});
  }
}

TEST(MlaAttention, ValueInTheKeySendsItsGradientThere) {
  Problem p = support::problem(
      {{"v_dim", 1}}, {{"query", f64s({1, 1, 1, 2}, {5, 6})}, {"key", f64s({1, 1, 1, 2}, {2, 3})}},
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

// ---- latent form ----------------------------------------------------------------------------------

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

}  // namespace
}  // namespace plumbline
