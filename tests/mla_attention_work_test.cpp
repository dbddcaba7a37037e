// mla_attention from saved tensors, its errors, and its work and memory against the formulas of
// docs/ops/mla_attention.md.
#include "reference/attention/row_heads.hpp"
#include "tests/attention_testing.hpp"

namespace plumbline {
namespace {

using namespace attention_testing;

// ---- given ----------------------------------------------------------------------------------------

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

// ---- errors ---------------------------------------------------------------------------------------

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
  expect_error(changed([](Problem& p) { p.in.erase("value"), p.options["v_dim"] = 2; }),
               "option v_dim", "at most the width");
  expect_error(changed([](Problem& p) {
                 put_in(p, "value", f64s({1, 3, 2, 1}, Numbers(6, 0)));
               }),
               "in.value", "Hk = 1");
  expect_error(changed([](Problem& p) {
                 put_in(p, "k_pe", f64s({1, 3, 1}, {0, 0, 0}));
               }),
               "in.key", "none");
  expect_error(changed([](Problem& p) {
                 put_in(p, "selected", bools({1, 2, 3}, "111111"));
               }),
               "in.indices", "one of them");
  expect_error(changed([](Problem& p) { p.schedule["absorbed"] = true; }), "schedule.absorbed");
  expect_error(changed([](Problem& p) { p.schedule["barrier"] = true; }), "schedule.barrier");
  expect_error(changed([](Problem& p) { p.options["lse_base"] = 10; }), "option lse_base",
               "one of e, 2");
  expect_error(changed([](Problem& p) {
                 p.cot.clear(), put_cot(p, "output", f64s({1, 2, 1, 1}, {1, 1}));
               }),
               "cot.output");
  expect_error(changed([](Problem& p) { put_in(p, "sink", f64s({1}, {nan})); }), "in.sink[0]",
               "NaN");
  expect_error(changed([](Problem& p) {
                 put_in(p, "key", f64s({1, 3, 1, 1}, {1, nan, 7}));
               }),
               "in.key[0, 1, 0, 0]", "NaN");
  expect_error(changed([](Problem& p) {
                 put_in(p, "query", f64s({1, 2, 3, 1}, Numbers(6, 0)));
                 put_in(p, "key", f64s({1, 3, 2, 1}, Numbers(6, 0)));
                 put_in(p, "value", f64s({1, 3, 2, 1}, Numbers(6, 0)));
                 p.cot.clear();
               }),
               "in.key", "a divisor of H = 3");
  expect_error(changed([](Problem& p) {
                 p.options["mask"]["causal"] = true, p.options["strict_selection"] = true;
                 put_in(p, "indices", i32s({1, 2, 1}, {2, 1}));
               }),
               "in.indices[0, 0, 0]", "strict_selection");
  expect_error(
      [] {
        Problem p = latent_problem(false);
        p.options.erase("nope_dim");
        evaluate(p);
      },
      "option nope_dim");
  expect_error(
      [] {
        Problem p = latent_problem(false);
        p.in.erase("wkv_b");
        evaluate(p);
      },
      "in.wkv_b");
  expect_error(
      [] {
        Problem p = latent_problem(true);
        put_in(p, "k_pe", f64s({1, 2, 2}, {0, 0, 0, 0}));
        evaluate(p);
      },
      "in.query", "nope_dim + dr = 1 + 2");
}

// An invisible key that is selected is dropped unless the selection is strict; a duplicate counts
// after that.
TEST(MlaAttention, InvisibleSelectionsAreDropped) {
  Problem p = half_empty();
  p.options["mask"]["causal"] = true;  // rows stand at tokens 1 and 2
  put_in(p, "indices", i32s({1, 2, 3}, {2, 0, 2, 2, -1, -1}));
  expect_numbers(output(evaluate(p), "output"), {1, 2, 5, 6});
}

// ---- work and memory ------------------------------------------------------------------------------

struct Counted {
  Work forward, backward;
};
Counted count_work(std::int64_t S, std::int64_t H, const Json& schedule, bool given = false) {
  const std::int64_t D = 3, Dv = 2;
  Problem p = support::problem(
      {{"mask", {{"causal", false}}}},
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
        const std::int64_t h = chunk == 0 ? H : chunk, n = block == 0 ? S : block,
                           chunks = (H + h - 1) / h;
        const auto numbers = [](std::int64_t count) {
          return count * static_cast<std::int64_t>(sizeof(double));
        };
        const std::int64_t states =
            h * static_cast<std::int64_t>(sizeof(attention::HeadState<double>));
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
    Problem p =
        support::problem({{"nope_dim", dn}, {"v_dim", dv}}, {{"query", fill({1, 1, H, dn + dr})},
                                                             {"kv_latent", fill({1, S, R})},
                                                             {"k_pe", fill({1, S, dr})},
                                                             {"wkv_b", fill({R, H, dn + dv})}});
    p.schedule = {{"absorbed", absorbed}, {"key_block", 4}};
    Evaluation how;
    how.precision = Precision::f64;
    return operation("mla_attention").evaluate(p, how).forward;
  };
  const std::int64_t expanded = S * H * (dn + dv) * 8;
  EXPECT_GT(work(false).peak_bytes, expanded);
  EXPECT_LT(work(true).peak_bytes, expanded / 2);
  EXPECT_EQ(work(true).rows_fetched, 3 * S);  // latent and k_pe, the latent again as value
  EXPECT_EQ(work(false).rows_fetched,
            S + 2 * S * H + S);  // latent; each head's key and value; k_pe
}

}  // namespace
}  // namespace plumbline
