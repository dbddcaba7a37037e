// linear, rms_norm, layer_norm and rope: numbers that a hand can follow, the corners of the rules,
// and errors that name what is wrong. Peer numbers: peer_test; random shapes:
// properties/mla_projection_property.cpp.
#include "tests/mla_testing.hpp"

namespace plumbline {
namespace {

using namespace mla_testing;

// ---- linear -------------------------------------------------------------------------------------

Problem two_heads(Json options, Numbers cot) {  // W [2, 1, 3]
  const auto width = static_cast<std::int64_t>(cot.size());
  return support::problem(std::move(options),
                          {{"x", f64s({1, 2}, {1, 2})},
                           {"weight", f64s({2, 1, 3}, {1, 2, 3, 4, 5, 6})},
                           {"bias", f64s({1, 3}, {10, 20, 30})}},
                          {{"y", f64s({1, 1, width}, std::move(cot))}});
}

TEST(Linear, SlicesAreTheWhole) {
  const Result whole = run("linear", two_heads(Json::object(), {1, 10, 100}));
  expect_near(output(whole, "y"), {19, 32, 45}, 0);
  expect_near(gradient(whole, "x"), {321, 654}, 0);
  expect_near(gradient(whole, "weight"), {1, 10, 100, 2, 20, 200}, 0);
  expect_near(gradient(whole, "bias"), {1, 10, 100}, 0);

  const Result left = run("linear", two_heads({{"slice_bounds", {0, 2}}}, {1, 10}));
  const Result right = run("linear", two_heads({{"slice_bounds", {2, 3}}}, {100}));
  expect_near(output(left, "y"), {19, 32}, 0);
  expect_near(output(right, "y"), {45}, 0);
  EXPECT_EQ(output(left, "y").shape, (Shape{1, 1, 2}));
  expect_near(gradient(left, "x"), {21, 54}, 0);
  expect_near(gradient(right, "x"), {300, 600}, 0);
  expect_near(gradient(left, "weight"), {1, 10, 0, 2, 20, 0}, 0);
  expect_near(gradient(right, "weight"), {0, 0, 100, 0, 0, 200}, 0);
  expect_near(gradient(right, "bias"), {0, 0, 100}, 0);
}

TEST(Linear, ColumnsOutsideTheSliceAreNotRead) {
  Problem poisoned = two_heads({{"slice_bounds", {1, 2}}}, {1});
  support::put_in(poisoned, "weight", f64s({2, 1, 3}, {nan, 2, nan, nan, 5, nan}));
  support::put_in(poisoned, "bias", f64s({1, 3}, {nan, 20, nan}));
  expect_near(output(run("linear", poisoned), "y"), {32}, 0);
}

TEST(Linear, SliceErrors) {
  for (const auto& [begin, end] : {std::pair(-1, 2), {2, 2}, {2, 1}, {0, 4}, {3, 4}}) {
    expect_error("linear", two_heads({{"slice_bounds", {begin, end}}}, {1}), "option slice_bounds",
                 "<= 3, the width of in.weight");
  }
  expect_error("linear", two_heads({{"slice_bounds", {0, 1, 2}}}, {1}), "option slice_bounds",
               "two integers");
  expect_error("linear", two_heads({{"slice_bounds", 2}}, {1}), "option slice_bounds",
               "two integers");
  expect_error("linear", two_heads({{"slice_bounds", {0, 1.5}}}, {1}), "option slice_bounds[1]",
               "an integer");
  expect_error("linear", two_heads({{"slice_bounds", {0, 2}}}, {1}), "cot.y",
               "option slice_bounds");
}

TEST(Linear, QuantisedWeights) {
  StoredTensor weight = f8s({2, 1, 3}, {0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c});  // 1 2 3 4 5 6
  weight.scale = std::make_shared<StoredTensor>(f32s({1, 1, 1}, {2}));
  Problem whole = two_heads(Json::object(), {1, 10, 100});
  support::put_in(whole, "weight", weight);
  expect_near(output(run("linear", whole), "y"), {28, 44, 60}, 0);
  // Refused before anything else is looked at: x does not even fit.
  Problem sliced = two_heads({{"slice_bounds", {0, 2}}}, {1, 10});
  support::put_in(sliced, "weight", weight);
  support::put_in(sliced, "x", f64s({1, 5}, {1, 2, 3, 4, 5}));
  expect_error("linear", sliced, "option slice_bounds", "quantised (F8_E4M3)");
}

TEST(Linear, NoRows) {
  const Problem none = support::problem(
      Json::object(), {{"x", f64s({0, 2}, {})}, {"weight", f64s({2, 1, 3}, {1, 2, 3, 4, 5, 6})}},
      {{"y", f64s({0, 1, 3}, {})}});
  const Result result = run("linear", none);
  EXPECT_EQ(output(result, "y").shape, (Shape{0, 1, 3}));
  expect_near(gradient(result, "weight"), {0, 0, 0, 0, 0, 0}, 0);
  EXPECT_EQ(result.find("bias", true), nullptr);
}

// ---- norms --------------------------------------------------------------------------------------

TEST(RmsNorm, ByHand) {  // mean square 25/4, factor 2/5
  const Problem problem = support::problem({{"eps", 0}}, {{"x", f64s({4}, {3, 4, 0, 0})}},
                                           {{"y", f64s({4}, {1, 0, 0, 0})}});
  const Result plain = run("rms_norm", problem);
  expect_near(output(plain, "y"), {1.2, 1.6, 0, 0});
  expect_near(gradient(plain, "x"), {0.256, -0.192, 0, 0});
  EXPECT_EQ(plain.find("weight", true), nullptr);
  Problem weighted = problem;
  support::put_in(weighted, "weight", f64s({4}, {5, 10, 1, 1}));
  const Result result = run("rms_norm", weighted);
  expect_near(output(result, "y"), {6, 16, 0, 0}, 3e-15);
  expect_near(gradient(result, "x"), {1.28, -0.96, 0, 0});
  expect_near(gradient(result, "weight"), {1.2, 0, 0, 0});
}

TEST(LayerNorm, ByHand) {  // mean 3, biased variance 4
  const Result result = run("layer_norm", support::problem({{"eps", 0}},
                                                           {{"x", f64s({1, 1, 4}, {1, 1, 5, 5})},
                                                            {"weight", f64s({4}, {1, 2, 3, 4})},
                                                            {"bias", f64s({4}, {10, 20, 30, 40})}},
                                                           {{"y", f64s({1, 1, 4}, {1, 0, 0, 0})}}));
  expect_near(output(result, "y"), {9, 18, 33, 44}, 0);
  expect_near(gradient(result, "x"), {0.25, -0.25, 0, 0}, 0);
  expect_near(gradient(result, "weight"), {-1, 0, 0, 0}, 0);
  expect_near(gradient(result, "bias"), {1, 0, 0, 0}, 0);
}

TEST(LayerNorm, ALargeMeanCostsNoDigits) {
  const double big = std::ldexp(1, 40);
  const Problem problem =
      support::problem({{"eps", 0}}, {{"x", f64s({4}, {big - 2, big - 2, big + 2, big + 2})}});
  expect_near(output(run("layer_norm", problem, Precision::f64), "y"), {-1, -1, 1, 1}, 0);
}

TEST(Norms, RowsThatHaveNone) {
  const Problem zero = support::problem({{"eps", 0}}, {{"x", f64s({2, 2}, {1, 2, 0, 0})}});
  expect_error("rms_norm", zero, "in.x[1]", "eps 0");
  expect_error("layer_norm", zero, "in.x[1]", "eps 0");
  // The mean of three 0.1 rounds, and the row is constant all the same.
  const Problem constant = support::problem({{"eps", 0}}, {{"x", f64s({1, 3}, {0.1, 0.1, 0.1})}});
  expect_error("layer_norm", constant, "in.x[0]", "eps 0");
  Problem guarded = support::problem(
      {{"eps", 1e-6}}, {{"x", f64s({1, 3}, {0.1, 0.1, 0.1})}, {"bias", f64s({3}, {1, 2, 3})}});
  expect_near(output(run("layer_norm", guarded, Precision::f64), "y"), {1, 2, 3}, 0);
}

TEST(Norms, Errors) {
  for (const char* op : {"rms_norm", "layer_norm"}) {
    expect_error(op, support::problem({{"eps", -1e-7}}, {{"x", f64s({1, 2}, {1, 2})}}),
                 "option eps", "-1e-07");
    expect_error(op, support::problem(Json::object(), {{"x", f64s({}, {1})}}), "in.x", "rank >= 1");
    expect_error(op, support::problem(Json::object(), {{"x", f64s({2, 0}, {})}}), "in.x",
                 "at least one element");
    expect_error(op,
                 support::problem(Json::object(),
                                  {{"x", f64s({1, 2}, {1, 2})}, {"weight", f64s({3}, {1, 1, 1})}}),
                 "in.weight", "[2]");
    expect_error(
        op,
        support::problem(Json::object(), {{"x", f64s({1, 2}, {1, 2})}}, {{"y", f64s({2}, {1, 2})}}),
        "cot.y", "[1, 2]");
    expect_error(op, support::problem(Json::object(), {{"x", f64s({1, 2}, {1, nan})}}),
                 "in.x[0, 1]", "NaN");
    EXPECT_EQ(
        output(run(op, support::problem(Json::object(), {{"x", f64s({3, 0, 2}, {})}})), "y").shape,
        (Shape{3, 0, 2}));
  }
}

// ---- rope ---------------------------------------------------------------------------------------

Problem one_row(Json rope, Numbers x, std::int32_t position) {
  const auto width = static_cast<std::int64_t>(x.size());
  return support::problem({{"rope", std::move(rope)}}, {{"x", f64s({1, 1, 1, width}, std::move(x))},
                                                        {"positions", i32s({1, 1}, {position})}});
}

TEST(Rope, PairingsOfTheFieldFault) {
  const Numbers x = {1, 0, 0, 0};
  expect_near(output(run("rope", one_row({{"theta", 10000}, {"dim", 4}}, x, 1)), "y"),
              {c1, s1, 0, 0}, 0);
  expect_near(
      output(run("rope", one_row({{"theta", 10000}, {"dim", 4}, {"pairing", "half"}}, x, 1)), "y"),
      {c1, 0, s1, 0}, 0);
  expect_near(
      output(run("rope", one_row({{"theta", 10000}, {"dim", 4}, {"output", "half"}}, x, 1)), "y"),
      {c1, 0, s1, 0}, 0);
  expect_near(
      output(run("rope", one_row({{"theta", 10000}, {"dim", 4}, {"inverse", true}}, x, 1)), "y"),
      {c1, -s1, 0, 0}, 0);
  expect_near(output(run("rope", one_row({{"theta", 10000}, {"dim", 4}}, x, -1)), "y"),
              {c1, -s1, 0, 0}, 0);
}

TEST(Rope, OutputOfTheInverseIsTheLayoutOfItsInput) {
  const Json back = {{"theta", 4}, {"dim", 4}, {"inverse", true}, {"output", "half"}};
  expect_near(output(run("rope", one_row(back, {1, 2, 3, 4}, 0)), "y"), {1, 3, 2, 4}, 0);
  const Json there = {{"theta", 4}, {"dim", 4}, {"output", "half"}};
  expect_near(output(run("rope", one_row(there, {1, 2, 3, 4}, 0)), "y"), {1, 3, 2, 4}, 0);
  // half pairs are apart already
  const Json half = {{"theta", 4}, {"dim", 4}, {"pairing", "half"}, {"output", "half"}};
  expect_near(output(run("rope", one_row(half, {1, 2, 3, 4}, 0)), "y"), {1, 2, 3, 4}, 0);
}

TEST(Rope, PlacementAndFactor) {
  const Json trailing = {{"theta", 10000}, {"dim", 2}, {"attention_factor", 2}};
  expect_near(output(run("rope", one_row(trailing, {7, 8, 1, 0}, 1)), "y"), {7, 8, 2 * c1, 2 * s1},
              0);
  Json leading = trailing;
  leading["placement"] = "leading";
  expect_near(output(run("rope", one_row(leading, {1, 0, 7, 8}, 1)), "y"), {2 * c1, 2 * s1, 7, 8},
              0);
}

TEST(Rope, FarPositionsKeepTheirDigits) {
  // sin and cos of 10^6, and of 10^6·10000^(−2·5/12): the second is no double.
  const Problem far =
      one_row({{"theta", 10000}, {"dim", 12}}, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 1000000);
  const Result truth = run("rope", far, Precision::mp100), high = run("rope", far),
               f64 = run("rope", far, Precision::f64);
  EXPECT_EQ(output(truth, "y").high[0], 0.9367521275331447);
  EXPECT_EQ(output(truth, "y").high[1], -0.34999350217129294);
  EXPECT_EQ(output(high, "y").high, output(truth, "y").high);
  expect_near(output(f64, "y"), output(truth, "y").high, 2e-16);
}

TEST(Rope, YarnRamp) {
  // i(32) = 1.309 → 1, i(1) = 2.814 → 3: pair 1 keeps 0.1, pair 2 is half way, pair 3 has 0.001/4.
  const Json yarn = {
      {"factor", 4}, {"original_max_position", 4096}, {"beta_fast", 32}, {"beta_slow", 1}};
  const Json rope = {{"theta", 10000}, {"dim", 8}, {"yarn", yarn}};
  expect_near(output(run("rope", one_row(rope, {1, 0, 1, 0, 1, 0, 1, 0}, 1)), "y"),
              {c1, s1, std::cos(0.1), std::sin(0.1), std::cos(0.00625), std::sin(0.00625),
               std::cos(0.00025), std::sin(0.00025)},
              2e-16);
}

TEST(Rope, YarnRampOutsideThePairs) {
  // i(32) = −2.8, i(1) = −0.33. Truncated, both ends are 0, the ramp is 0.001 long and pair 1 is
  // slowed; without truncation it runs backwards from 0 to −0.33, and pair 1 keeps its frequency
  // 16^(−1/2).
  Json yarn = {{"factor", 2}, {"original_max_position", 4}, {"beta_fast", 32}, {"beta_slow", 1}};
  Json rope = {{"theta", 16}, {"dim", 4}, {"yarn", yarn}};
  expect_near(output(run("rope", one_row(rope, {1, 0, 1, 0}, 1)), "y"),
              {c1, s1, std::cos(0.125), std::sin(0.125)}, 2e-16);
  rope["yarn"]["truncate"] = false;
  expect_near(output(run("rope", one_row(rope, {1, 0, 1, 0}, 1)), "y"),
              {c1, s1, std::cos(0.25), std::sin(0.25)}, 2e-16);
  // i(1) = 8.6 → 8 stays, i(0.001) is cut at dim − 1 = 3: backwards again, and both pairs are
  // slowed.
  rope["yarn"] = {
      {"factor", 2}, {"original_max_position", 1000000}, {"beta_fast", 1}, {"beta_slow", 0.001}};
  expect_near(output(run("rope", one_row(rope, {1, 0, 1, 0}, 1)), "y"),
              {std::cos(0.5), std::sin(0.5), std::cos(0.125), std::sin(0.125)}, 2e-16);
}

TEST(Rope, Errors) {
  const auto fails = [](Json rope, const char* where, const char* about) {
    expect_error("rope", one_row(std::move(rope), {1, 0, 0, 0}, 1), where, about);
  };
  fails(Json::object(), "option rope.dim", "nothing");
  fails({{"dim", 4}}, "option rope.theta", "nothing");
  fails({{"theta", 10000}, {"dim", 3}}, "option rope.dim", "even");
  fails({{"theta", 10000}, {"dim", 0}}, "option rope.dim", "even");
  fails({{"theta", 10000}, {"dim", 6}}, "option rope.dim", "at most 4");
  fails({{"theta", 0}, {"dim", 4}}, "option rope.theta", "> 0");
  fails({{"theta", 10000}, {"dim", 4}, {"pairing", "odd"}}, "option rope.pairing",
        "interleaved, half");
  Json yarn = {{"factor", 2}, {"original_max_position", 64}, {"beta_fast", 32}, {"beta_slow", 1}};
  for (const char* name : {"factor", "original_max_position", "beta_fast", "beta_slow"}) {
    Json less = yarn, zero = yarn;
    less.erase(name);
    zero[name] = 0;
    const std::string where = std::string("option rope.yarn.") + name;
    fails({{"theta", 10000}, {"dim", 4}, {"yarn", less}}, where.c_str(), "nothing");
    fails({{"theta", 10000}, {"dim", 4}, {"yarn", zero}}, where.c_str(), "> 0");
  }
  fails({{"theta", 1}, {"dim", 4}, {"yarn", yarn}}, "option rope", "theta");
  Problem wide = one_row({{"theta", 10000}, {"dim", 4}}, {1, 0, 0, 0}, 1);
  support::put_in(wide, "positions", i32s({1, 2}, {1, 2}));
  expect_error("rope", wide, "in.positions", "S = 1");
}

}  // namespace
}  // namespace plumbline
