// csa_indexer: the number of its page, its parts against the operations they are made of, and what nobody reads.
#include "tests/mla_testing.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

using namespace mla_testing;

// docs/ops/csa_indexer.md: m = 2, e = 2, one head. Gates are 0, lane A carries zeros, so a key is the direction of
// the sum of its tokens.
Problem page() {
  return support::problem(
      {{"m", 2}, {"k", 1}, {"eps", 0.0}, {"rope", {{"theta", 100.0}, {"dim", 2}}}},
      {{"x", f64s({1, 4, 2}, {3, 0, 5, 8, 1, 0, 5, 8})},
       {"q_latent", f64s({1, 4, 1}, {1, 1, 1, 1})},
       {"q_proj", f64s({1, 1, 2}, {1, 0})},
       {"kv_proj", f64s({2, 4}, {0, 0, 1, 0, 0, 0, 0, 1})},
       {"gate_proj", f64s({2, 4}, Numbers(8))},
       {"position_bias", f64s({2, 4}, Numbers(8))},
       {"kv_norm_weight", f64s({2}, {1, 1})},
       {"weights_proj", f64s({2, 1}, {1, 0})}});
}

TEST(CsaIndexer, TheNumberOfThePage) {
  Problem problem = page();
  support::put_cot(problem, "scores", f64s({1, 4, 2}, {9, 9, 9, 9, 9, 9, 9, 1}));
  const Result result = run("csa_indexer", problem);
  const double r = std::sqrt(12.5), c = std::sqrt(0.5),
               inf = std::numeric_limits<double>::infinity();
  const double a = std::cos(1.0), b = std::sin(1.0), c2 = std::cos(2.0), s2 = std::sin(2.0);
  expect_near(output(result, "index_k"), {1, 1, (3 * c2 - 4 * s2) / r, (3 * s2 + 4 * c2) / r});
  expect_near(output(result, "index_w"), {3, 5, 1, 5}, 0);
  const double one = (3 * a + 4 * b) / r;
  const Value& scores = output(result, "scores");
  for (const std::size_t hidden : {0u, 1u, 3u, 5u}) EXPECT_EQ(scores.high[hidden], -inf) << hidden;
  EXPECT_NEAR(scores.high[2], c * 5 * (a + b), 1e-14);
  EXPECT_NEAR(scores.high[4], c * (c2 + s2), 1e-14);
  EXPECT_EQ(scores.high[6], 0) << "cos 3 + sin 3 < 0";
  EXPECT_NEAR(scores.high[7], c * 5 * one, 1e-14);
  EXPECT_EQ(output(result, "indices").integers, (std::vector<std::int32_t>{-1, 0, 0, 1}));

  Problem last = page();  // the gradient of score (3, 1) and, dead, of (3, 0)
  support::put_cot(last, "scores", f64s({1, 4, 2}, {0, 0, 0, 0, 0, 0, 1, 1}));
  const Result back = run("csa_indexer", last);
  expect_near(gradient(back, "weights_proj"), {c * one * 5, c * one * 8}, 1e-14);
  expect_near(gradient(back, "q_proj"), {c * 5 * one, c * 5 * (4 * a - 3 * b) / r}, 1e-14);
  // Through the norm: what is left is orthogonal to (3, 4).
  const double g0 = c * 5 * a, g1 = c * 5 * b, along = (3 * g0 + 4 * g1) / 25;
  expect_near(gradient(back, "kv_norm_weight"), {g0 * 3 / r, g1 * 4 / r}, 1e-14);
  // Lane B: tokens 2 and 3, a quarter of the mean each; the sums of both rows of x stand in kv_proj. Lane A: tokens
  // 0 and 1, whose sum is (8, 8). The pooled key is half of (3, 4), so the norm's factor is 2/r.
  const double d0 = 2 / r * (g0 - 3 * along) / 4, d1 = 2 / r * (g1 - 4 * along) / 4;
  expect_near(gradient(back, "kv_proj"),
              {8 * d0, 8 * d1, 6 * d0, 6 * d1, 8 * d0, 8 * d1, 8 * d0, 8 * d1}, 1e-14);
}

class Drawn {
 public:
  Problem problem;
  Drawn() {
    problem.options = {{"m", 3}, {"k", 2}, {"rope", {{"theta", 100.0}, {"dim", 2}}}};
    problem.outputs = {"all"};
    put("x", {2, 11, 4}), put("q_latent", {2, 11, 5}), put("q_proj", {5, 3, 3});
    put("kv_proj", {4, 6}), put("gate_proj", {4, 6}), put("position_bias", {3, 6});
    put("kv_norm_weight", {3}), put("weights_proj", {4, 3});
  }
  void put(const std::string& name, const Shape& shape) {
    support::put_in(problem, name, f64s(shape, values(name, shape)));
  }
  static Numbers values(const std::string& name, const Shape& shape) {
    return support::Stream(3, name).reals(count_of(shape), support::Contents::dyadic);
  }
};

StoredTensor as_tensor(const Value& value, const Shape& shape) { return f64s(shape, value.high); }

// index_k is csa_compress of what linear makes of x; scores and selection are indexer_scores and topk.
TEST(CsaIndexer, IsMadeOfTheOtherOperations) {
  Drawn drawn;
  const Result whole = run("csa_indexer", drawn.problem, Precision::f64);
  Problem compress;
  compress.options = {{"m", 3}, {"rope", drawn.problem.options["rope"]}};
  for (const char* name : {"kv", "gate"}) {
    Problem linear;
    support::put_in(linear, "x", f64s({22, 4}, Drawn::values("x", {22, 4})));
    const std::string weight = std::string(name) + "_proj";
    support::put_in(linear, "weight", f64s({4, 1, 6}, Drawn::values(weight, {4, 6})));
    support::put_in(compress, name,
                    as_tensor(output(run("linear", linear, Precision::f64), "y"), {2, 11, 6}));
  }
  support::put_in(compress, "position_bias", drawn.problem.in.at("position_bias"));
  support::put_in(compress, "norm_weight", drawn.problem.in.at("kv_norm_weight"));
  const Value keys = output(run("csa_compress", compress, Precision::f64), "compressed");
  EXPECT_EQ(output(whole, "index_k").high, keys.high);

  Problem topk;
  topk.options = {{"k", 2}, {"keys", "blocks"}, {"m", 3}, {"S", 11}};
  topk.outputs = {"all"};
  support::put_in(topk, "scores", as_tensor(output(whole, "scores"), {2, 11, 3}));
  const Result best = run("topk", topk, Precision::f64);
  EXPECT_EQ(output(whole, "indices").integers, output(best, "indices").integers);
  EXPECT_EQ(output(whole, "selected").booleans, output(best, "selected").booleans);
}

TEST(CsaIndexer, RowsAtTheirTokens) {
  Drawn drawn;
  const Result whole = run("csa_indexer", drawn.problem, Precision::f64);
  support::put_in(drawn.problem, "row_index", i32s({3}, {9, 2, 5}));
  const Result few = run("csa_indexer", drawn.problem, Precision::f64);
  EXPECT_EQ(output(few, "scores").shape, (Shape{2, 3, 3}));
  const std::size_t tokens[] = {9, 2, 5};
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(output(few, "indices").integers[t * 2 + i],
                output(whole, "indices").integers[tokens[t] * 2 + i]);
    }
  }
}

// Tokens that no real row and no visible block reads, the block in front of it included.
TEST(CsaIndexer, WhatNobodyReads) {
  Drawn drawn;
  support::put_in(drawn.problem, "row_index", i32s({2}, {8, 6}));
  // Row 0 sees block 2 alone, row 1 nothing.
  support::put_in(drawn.problem, "valid", support::bools({2, 2, 3}, "001 000 001 000"));
  support::put_cot(drawn.problem, "scores", f64s({2, 2, 3}, Numbers(12, 1)));
  const Result clean = run("csa_indexer", drawn.problem, Precision::f64);
  Numbers x = Drawn::values("x", {2, 11, 4});
  const auto poison = [&](std::size_t token) {
    Problem problem = drawn.problem;
    Numbers poisoned = x;
    poisoned[token * 4 + 1] = nan;
    support::put_in(problem, "x", f64s({2, 11, 4}, poisoned));
    return problem;
  };
  for (const std::size_t token : {0u, 1u, 2u, 9u, 10u}) {
    const Result found = run("csa_indexer", poison(token), Precision::f64);
    EXPECT_EQ(support::difference(clean.gradients, found.gradients), "") << token;
    EXPECT_EQ(output(clean, "scores").high, output(found, "scores").high) << token;
  }
  for (const std::size_t token : {3u, 4u, 5u, 6u, 7u, 8u}) {  // block 1 stands in lane A of block 2
    expect_error("csa_indexer", poison(token), "in.x[0, " + std::to_string(token) + ", 1]", "NaN");
  }
}

TEST(CsaIndexer, GivenStagesReplaceWhatLeadsToThem) {
  Drawn drawn;
  const Result whole = run("csa_indexer", drawn.problem, Precision::f64);
  Problem given = drawn.problem;
  support::put_given(given, "index_k", as_tensor(output(whole, "index_k"), {2, 3, 3}));
  support::put_cot(given, "scores", f64s({2, 11, 3}, Numbers(66, 1)));
  const Result from_keys = run("csa_indexer", given, Precision::f64);
  EXPECT_EQ(output(from_keys, "scores").high, output(whole, "scores").high);
  for (const char* zero : {"kv_proj", "gate_proj", "position_bias", "kv_norm_weight"}) {
    for (const double x : gradient(from_keys, zero).high) EXPECT_EQ(x, 0) << zero;
  }
  support::put_given(given, "indices", i32s({2, 11, 2}, support::Integers(44, -1)));
  EXPECT_EQ(output(run("csa_indexer", given, Precision::f64), "indices").integers,
            std::vector<std::int32_t>(44, -1));
}

TEST(CsaIndexer, Errors) {
  Drawn drawn;
  const auto option = [&](const char* name, Json value) {
    Problem problem = drawn.problem;
    problem.options[name] = std::move(value);
    return problem;
  };
  expect_error("csa_indexer", option("k", nullptr), "option k");
  expect_error("csa_indexer", option("k", -1), "option k");
  expect_error("csa_indexer", option("m", nullptr), "option m");
  expect_error("csa_indexer", option("m", 2), "in.position_bias", "m = 2");
  expect_error("csa_indexer", option("eps", -1.0), "option eps");
  expect_error("csa_indexer", option("rope", {{"theta", 100.0}}), "option rope.dim");
  expect_error("csa_indexer", option("boundary", "segments"), "option boundary");
  Problem wide = drawn.problem;
  support::put_in(wide, "kv_proj", f64s({4, 8}, Numbers(32)));
  expect_error("csa_indexer", wide, "in.kv_proj", "e = 3");
}

}  // namespace
}  // namespace plumbline
