// mla_projection: a case worked by hand, what a schedule keeps to the bit, work counted, given
// latents, and errors. Peer numbers: peer_test; random shapes:
// properties/mla_projection_property.cpp.
#include "tests/mla_testing.hpp"

namespace plumbline {
namespace {

using namespace mla_testing;

Problem by_hand() {  // docs/ops/mla_projection.md
  return support::problem({{"nope_dim", 2},
                           {"rope_dim", 2},
                           {"v_dim", 1},
                           {"eps", 0},
                           {"rope", {{"theta", 10000}, {"dim", 2}}}},
                          {{"x", f64s({1, 1, 2}, {1, 7})},
                           {"positions", i32s({1, 1}, {1})},
                           {"wq", f64s({2, 1, 4}, {1, 0, 0, 1, 0, 1, 0, 0})},
                           {"wkv_a", f64s({2, 4}, {1, 0, 1, 0, 0, 1, 0, 0})},
                           {"kv_norm", f64s({2}, {5, 5})},
                           {"wkv_b", f64s({2, 1, 3}, {1, 0, 1, 0, 1, 1})}});
}

TEST(MlaProjection, ByHand) {
  const Result result = run("mla_projection", by_hand());
  expect_near(output(result, "kv_latent"), {1, 7});
  expect_near(output(result, "k_pe"), {c1, s1});
  expect_near(output(result, "key"), {1, 7, c1, s1});
  expect_near(output(result, "value"), {8});
  expect_near(output(result, "query"), {0.5, 3.5, -s1 / 2, c1 / 2});
  EXPECT_EQ(result.find("q_latent"), nullptr);
}

TEST(MlaProjection, MscaleEntersBeyondTheTrainedLength) {
  Problem longer = by_hand();
  longer.options["rope"]["yarn"] = {
      {"factor", 40}, {"original_max_position", 64}, {"beta_fast", 32}, {"beta_slow", 1}};
  longer.options["mscale"] = 0.5;
  longer.options["max_position"] = 2560;
  const double plain =
      output(run("mla_projection", longer), "query").high[0];  // original_max_position is not set
  EXPECT_DOUBLE_EQ(plain, 0.5);
  longer.options["original_max_position"] = 2560;
  EXPECT_DOUBLE_EQ(output(run("mla_projection", longer), "query").high[0], 0.5);
  longer.options["original_max_position"] = 64;
  const double factor = 0.05 * std::log(40.0) + 1;
  EXPECT_NEAR(output(run("mla_projection", longer), "query").high[0], 0.5 * factor * factor, 1e-15);
  longer.options["rope"].erase("yarn");
  expect_error("mla_projection", longer, "option rope.yarn", "mscale");
}

// Low-rank query, biases everywhere, 2 × 20 tokens: more than one block of rows.
Problem wide_case() {
  const std::int64_t B = 2, S = 20, E = 5, H = 3, dn = 3, dr = 4, dv = 2, Rq = 4, Rkv = 3;
  auto some = [seed = 1](Shape shape) mutable {
    Numbers values(static_cast<std::size_t>(count_of(shape)));
    for (double& value : values) value = std::sin(seed++);
    return f64s(std::move(shape), std::move(values));
  };
  return support::problem({{"nope_dim", dn},
                           {"rope_dim", dr},
                           {"v_dim", dv},
                           {"rope", {{"theta", 100}, {"dim", dr}, {"output", "half"}}}},
                          {{"x", some({B, S, E})},
                           {"wq_a", some({E, Rq})},
                           {"q_norm", some({Rq})},
                           {"wq_b", some({Rq, H, dn + dr})},
                           {"wkv_a", some({E, Rkv + dr})},
                           {"kv_norm", some({Rkv})},
                           {"wkv_b", some({Rkv, H, dn + dv})},
                           {"bq_a", some({Rq})},
                           {"bq_b", some({H, dn + dr})},
                           {"bkv_a", some({Rkv + dr})},
                           {"bkv_b", some({H, dn + dv})}},
                          {{"query", some({B, S, H, dn + dr})},
                           {"key", some({B, S, H, dn + dr})},
                           {"value", some({B, S, H, dv})},
                           {"q_latent", some({B, S, Rq})},
                           {"kv_latent", some({B, S, Rkv})},
                           {"k_pe", some({B, S, dr})}});
}

TEST(MlaProjection, WhichBitsSlicingKeeps) {
  const Problem whole = wide_case();
  Problem sliced = whole;
  sliced.schedule["sliced"] = true;
  const Result x = run("mla_projection", whole, Precision::f64),
               y = run("mla_projection", sliced, Precision::f64);
  EXPECT_EQ(support::difference(x.outputs, y.outputs), "");
  // Weights and biases on the far side of the two sliced products: the same sums in the same order.
  for (const char* name : {"wq_b", "wkv_b", "bq_b", "bkv_b"}) {
    EXPECT_EQ(support::difference({gradient(x, name)}, {gradient(y, name)}), "");
  }
  // What comes through the input of those products is a sum of two partial sums.
  for (const char* name : {"x", "wq_a", "q_norm", "wkv_a", "kv_norm", "bq_a", "bkv_a"}) {
    expect_near(gradient(y, name), gradient(x, name).high, 1e-13);
  }
  EXPECT_NE(gradient(x, "x").high, gradient(y, "x").high);
}

TEST(MlaProjection, ThreadsChangeNoBit) {
  Problem problem = wide_case();
  const Result one = run("mla_projection", problem, Precision::f64, 1);
  EXPECT_EQ(support::difference(one, run("mla_projection", problem, Precision::f64, 3)), "");
}

TEST(MlaProjection, WorkOfSlicing) {
  const Problem whole = wide_case();
  Problem sliced = whole;
  sliced.schedule["sliced"] = true;
  const Work x = run("mla_projection", whole).forward, y = run("mla_projection", sliced).forward;
  const std::int64_t blocks = 3, E = 5, Rq = 4, Rkv = 3;  // 40 tokens in blocks of 16
  EXPECT_EQ(x.rows_fetched, blocks * (E + Rq + E + Rkv));
  EXPECT_EQ(y.rows_fetched, blocks * (E + 2 * Rq + E + 2 * Rkv));
  EXPECT_EQ(x.evaluations, y.evaluations);
  EXPECT_EQ(x.evaluations, 40 * (Rq + 3 * 7 + (Rkv + 4) + 3 * 5));
  EXPECT_LT(y.peak_bytes, x.peak_bytes);
}

TEST(MlaProjection, GivenLatentsAreConstants) {
  const Problem plain = wide_case();
  const Result computed = run("mla_projection", plain);
  Problem given = plain;
  for (const char* name : {"q_latent", "kv_latent", "k_pe"}) {
    const Value& value = output(computed, name);
    StoredTensor latent = f64s(value.shape, value.high);
    latent.low = std::make_shared<StoredTensor>(f64s(value.shape, value.low));
    support::put_given(given, name, latent);
  }
  support::put_in(given, "x", f64s({2, 20, 5}, Numbers(200, nan)));  // nothing reads it
  const Result result = run("mla_projection", given);
  for (const char* name : {"query", "key", "value", "q_latent", "kv_latent", "k_pe"}) {
    expect_near(output(result, name), output(computed, name).high, 0);
  }
  for (const char* name : {"wq_b", "wkv_b", "bq_b", "bkv_b"}) {
    expect_near(gradient(result, name), gradient(computed, name).high, 1e-14);
  }
  for (const char* name : {"x", "wq_a", "q_norm", "wkv_a", "kv_norm", "bq_a", "bkv_a"}) {
    for (const double value : gradient(result, name).high) EXPECT_EQ(value, 0) << name;
  }

  // One of the two that wkv_a makes: the other keeps its gradient, in its columns alone.
  Problem half = plain;
  support::put_given(half, "k_pe", given.given.find("k_pe")->second);
  const Result rest = run("mla_projection", half);
  expect_near(gradient(rest, "kv_norm"), gradient(computed, "kv_norm").high, 1e-14);
  const Numbers found = gradient(rest, "wkv_a").high, all = gradient(computed, "wkv_a").high;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], i % 7 < 3 ? all[i] : 0, 1e-13) << i;

  Problem other = plain;
  support::put_given(other, "kv_latent", given.given.find("kv_latent")->second);
  const Result turned = run("mla_projection", other);
  const Numbers pe = gradient(turned, "wkv_a").high;
  for (std::size_t i = 0; i < pe.size(); ++i)
    EXPECT_NEAR(pe[i], i % 7 < 3 ? 0 : all[i], 1e-13) << i;
  for (const double value : gradient(turned, "kv_norm").high) EXPECT_EQ(value, 0);
}

TEST(MlaProjection, GivenQueryLatentPassesBesideADirectQuery) {
  Problem problem = by_hand();
  support::put_given(problem, "q_latent", f64s({1, 1, 3}, {1, 2, 3}));
  expect_near(output(run("mla_projection", problem), "q_latent"), {1, 2, 3}, 0);
}

TEST(MlaProjection, Empty) {
  Problem none = by_hand();
  support::put_in(none, "x", f64s({1, 0, 2}, {}));
  support::put_in(none, "positions", i32s({1, 0}, {}));
  support::put_cot(none, "value", f64s({1, 0, 1, 1}, {}));
  const Result result = run("mla_projection", none);
  EXPECT_EQ(output(result, "query").shape, (Shape{1, 0, 1, 4}));
  expect_near(gradient(result, "kv_norm"), {0, 0}, 0);
}

TEST(MlaProjection, Errors) {
  const auto fails = [](void (*change)(Problem&), const char* where, const char* about) {
    Problem problem = by_hand();
    change(problem);
    expect_error("mla_projection", problem, where, about);
  };
  fails([](Problem& p) { p.options.erase("nope_dim"); }, "option nope_dim", "nothing");
  fails([](Problem& p) { p.options["v_dim"] = 0; }, "option v_dim", ">= 1");
  fails([](Problem& p) { p.options["eps"] = -1; }, "option eps", "eps >= 0");
  fails([](Problem& p) { p.options["rope_dim"] = 4; }, "option rope.dim", "the option rope_dim");
  fails([](Problem& p) { p.options["rope_dim"] = 3, p.options["rope"]["dim"] = 3; },
        "option rope.dim", "even");
  fails([](Problem& p) { p.options["max_position"] = -1; }, "option max_position", "0 = not set");
  fails([](Problem& p) { p.options["nope_dim"] = 3; }, "in.wq", "dn = 3 as in option nope_dim");
  fails([](Problem& p) { p.in.erase("wq"); }, "in.wq", "wq_a, q_norm and wq_b");
  fails(
      [](Problem& p) {
        support::put_in(p, "wq_a", f64s({2, 1}, {1, 1}));
      },
      "in.wq_a", "no latent");
  fails(
      [](Problem& p) {
        support::put_in(p, "bq_b", f64s({1, 4}, {1, 1, 1, 1}));
      },
      "in.bq_b", "no latent");
  fails(
      [](Problem& p) {
        p.in.erase("wq"), support::put_in(p, "wq_a", f64s({2, 1}, {1, 1}));
      },
      "in.q_norm", "nothing");
  fails([](Problem& p) { p.in.erase("kv_norm"); }, "in.kv_norm", "nothing");
  fails([](Problem& p) { p.schedule["key_block"] = 2; }, "schedule.key_block", "sliced");
  fails(
      [](Problem& p) {
        support::put_in(p, "x", f64s({1, 1, 2}, {0, 0}));
      },
      "kv_latent[0, 0] before its norm", "eps 0");
  fails(
      [](Problem& p) {
        support::put_cot(p, "q_latent", f64s({1, 1, 1}, {1}));
      },
      "cot.q_latent", "no latent");
  fails(
      [](Problem& p) {
        p.schedule["sliced"] = true;
        support::put_in(p, "wkv_b", f8s({2, 1, 3}, {0x38, 0, 0x38, 0, 0x38, 0x38}));
      },
      "schedule.sliced", "quantised (F8_E4M3)");
  fails(
      [](Problem& p) {
        p.in.erase("wq");
        support::put_in(p, "wq_a", f64s({2, 1}, {1, 1}));
        support::put_in(p, "q_norm", f64s({1}, {1}));
        support::put_in(p, "wq_b", f64s({1, 1, 4}, {1, 1, 1, 1}));
        support::put_in(p, "bq", f64s({1, 4}, {1, 1, 1, 1}));
      },
      "in.bq", "bias of in.wq");
}

}  // namespace
}  // namespace plumbline
