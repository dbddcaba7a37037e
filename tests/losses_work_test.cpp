// tests/losses_work_test.cpp
//
// Schedules are real work, counted. Of one row with n = |S_t| keys, H heads of width D, scores given, teacher own:
//
//   evaluations of P     barrier true: n·H in each direction.  barrier false: 2·n·H, once for ln ΣT (and the slopes
//                        of the gradient), once for the terms.  Of ln Z: n·H in each, counted apart.
//   bytes, in numbers    L = a log-sum (a maximum, a sum, counters), b = key_block (barrier false: 64 if 0),
//   of one precision     c = heads in flight = head_chunk, or H.
//     barrier false      2b + H·L + max( c·(D + b + 1) + D,  H + b·L + c·(D + 1) + D ), n >= b; the
//                        gradients b of a block come when the scratch of the head sum is gone.
//     barrier true,      2n + H·L + max( n + 2D + 1,  H + n·L + c·(D + 1) + D ): one head after another for ln Z
//     key_block 0
//   stored rows of keys  each chunk of heads reads the keys again: n·ceil(H/c) for the head sum, the same for ln Z
//   converted            (barrier true, key_block 0: n·H for ln Z). Raw indexer, A heads: n·ceil(A/c) per pass.
//
// max: the two moments of a pass, ln Z and the head sum. bytes are of Buffers, the scratch of a row.
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/numeric/primitives.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

using Int = std::int64_t;

constexpr Int heads = 5, width = 3, index_heads = 4;
constexpr Int number = sizeof(f64), log_sum = sizeof(LogSum<f64>);
Int ceil_of(Int n, Int chunk) { return (n + chunk - 1) / chunk; }

StoredTensor filled(const char* name, Shape shape) {
  const Int count = count_of(shape);
  return support::f64s(std::move(shape),
                       support::Stream(7, name).reals(count, support::Contents::dyadic));
}

// One row at the end of `keys` tokens or blocks, which it sees all.
Problem one_row(Int keys, bool blocks, bool raw = false) {
  Problem problem;
  problem.options = {{"preset", "exact"}, {"S", keys}};
  if (blocks) problem.options["m"] = 1;
  support::put_in(problem, "query", filled("query", {1, 1, heads, width}));
  support::put_in(problem, blocks ? "compressed" : "key",
                  filled("key", blocks ? Shape{1, keys, width} : Shape{1, keys, 1, width}));
  if (raw) {
    support::put_in(problem, "index_q", filled("index_q", {1, 1, index_heads, 2}));
    support::put_in(problem, "index_k", filled("index_k", {1, keys, 2}));
    support::put_in(problem, "index_w", filled("index_w", {1, 1, index_heads}));
  } else {
    support::put_in(problem, "scores", filled("scores", {1, 1, keys}));
  }
  return problem;
}

struct Counted {
  Work forward, backward;
};
Counted run(const std::string& op, Problem problem, Json schedule) {
  problem.schedule = std::move(schedule);
  const Result result =
      operation(op).evaluate(problem, {.precision = Precision::f64, .backward = true});
  return {result.forward, result.backward};
}
const std::string op_of(bool blocks) { return blocks ? "csa_indexer_loss" : "dsa_indexer_loss"; }

TEST(LossWork, EvaluationsPerDirection) {
  // Rows of every kind: S_t of row t is what `selected` and causality leave.
  const Int rows = 9;
  Problem problem;
  problem.options = {{"sparse", true}, {"preset", "exact"}};
  support::put_in(problem, "query", filled("query", {1, rows, heads, width}));
  support::put_in(problem, "key", filled("key", {1, rows, 1, width}));
  support::put_in(problem, "scores", filled("scores", {1, rows, rows}));
  support::Stream stream(1, "selected");
  support::Flags selected;
  Int cells = 0, visible = 0;
  for (Int t = 0; t < rows; ++t) {
    for (Int s = 0; s < rows; ++s) {
      selected.push_back(stream.chance(60) ? 1 : 0);
      visible += s <= t ? 1 : 0;
      cells += s <= t ? selected.back() : 0;
    }
  }
  support::put_in(problem, "selected", support::bools({1, rows, rows}, selected));
  for (const char* preset : {"exact", "maxtext_v32", "maxtext_v4", "megatron", "tilelang"}) {
    problem.options["preset"] = preset;
    for (const Int chunk : {0, 1, 2, 5, 7}) {
      for (const Int block : {0, 1, 2, 100}) {
        for (const bool barrier : {true, false}) {
          const Counted counted =
              run("dsa_indexer_loss", problem,
                  {{"barrier", barrier}, {"head_chunk", chunk}, {"key_block", block}});
          const Int expected = (barrier ? 1 : 2) * cells * heads;
          EXPECT_EQ(counted.forward.evaluations, expected) << preset;
          EXPECT_EQ(counted.backward.evaluations, expected) << preset;
          EXPECT_EQ(counted.forward.normaliser_evaluations, cells * heads);
          EXPECT_EQ(counted.backward.normaliser_evaluations, cells * heads);
        }
      }
    }
  }
  // after_softmax: ln Z goes over all visible keys, P still over S_t.
  problem.options["restrict"] = "after_softmax";
  const Counted after = run("dsa_indexer_loss", problem, {{"barrier", false}});
  EXPECT_EQ(after.forward.evaluations, 2 * cells * heads);
  EXPECT_EQ(after.forward.normaliser_evaluations, visible * heads);
}

// A saved log-sum-exp saves the normaliser, a given head sum everything.
TEST(LossWork, GivenIntermediatesSaveTheirWork) {
  Problem problem = one_row(6, true);
  support::put_given(problem, "log_mass", filled("mass", {1, 1, heads}));
  const Counted mass = run("csa_indexer_loss", problem, Json::object());
  EXPECT_EQ(mass.forward.evaluations, 6 * heads);
  EXPECT_EQ(mass.forward.normaliser_evaluations, 0);
  problem.given.clear();
  support::put_given(problem, "head_sum", support::f64s({1, 1, 6}, {1, 2, 3, 4, 5, 6}));
  const Counted sum = run("csa_indexer_loss", problem, Json::object());
  EXPECT_EQ(sum.forward.evaluations, 0);
  EXPECT_EQ(sum.forward.rows_fetched, 0);
}

TEST(LossWork, WithoutBarrierBytesDependOnTheBlockOnly) {
  for (const bool blocks : {true, false}) {
    for (const Int asked : {0, 1, 8, 24}) {
      for (const Int chunk : {0, 2}) {
        const Int b = asked == 0 ? 64 : asked, c = chunk == 0 ? heads : chunk;
        const Int mass = number * (c * (width + b + 1) + width);
        const Int sums = number * (heads + c * (width + 1) + width) + b * log_sum;
        const Int expected = number * 2 * b + heads * log_sum + std::max(mass, sums);
        for (const Int keys : {64, 128, 1000}) {
          const Counted counted =
              run(op_of(blocks), one_row(keys, blocks),
                  {{"barrier", false}, {"key_block", asked}, {"head_chunk", chunk}});
          EXPECT_EQ(counted.forward.peak_bytes, expected) << keys << " keys in blocks of " << b;
          // The backward holds dz of the block beside z and ln T, when the scratch of the head sum is gone.
          EXPECT_EQ(counted.backward.peak_bytes, expected) << keys << " keys in blocks of " << b;
        }
      }
    }
  }
}

TEST(LossWork, WithBarrierBytesGrowWithTheKeys) {
  for (const bool blocks : {true, false}) {
    for (const Int chunk : {0, 2}) {
      for (const Int keys : {10, 100, 1000}) {
        const Int c = chunk == 0 ? heads : chunk;
        const Int mass = number * (keys + 2 * width + 1);
        const Int sums = number * (heads + c * (width + 1) + width) + keys * log_sum;
        const Int expected = number * 2 * keys + heads * log_sum + std::max(mass, sums);
        const Counted counted = run(op_of(blocks), one_row(keys, blocks), {{"head_chunk", chunk}});
        EXPECT_EQ(counted.forward.peak_bytes, expected) << keys << " keys";
        EXPECT_EQ(counted.backward.peak_bytes, expected) << keys << " keys";
      }
    }
  }
}

// head_sum, target and student come out of the pass over the terms: no further evaluation.
TEST(LossWork, OutputsOnRequestCostNoPass) {
  Problem problem = one_row(20, false);
  problem.outputs = {"all"};
  for (const bool barrier : {true, false}) {
    const Counted counted =
        run("dsa_indexer_loss", problem, {{"barrier", barrier}, {"key_block", 3}});
    EXPECT_EQ(counted.forward.evaluations, (barrier ? 1 : 2) * 20 * heads);
  }
}

// Streaming under a barrier still keeps |S_t| numbers, a constant times; nothing of H·|S_t|.
TEST(LossWork, BarrierKeepsAConstantTimesTheKeysWhateverTheBlock) {
  const auto bytes = [](Int keys, Int block) {
    return run("dsa_indexer_loss", one_row(keys, false), {{"barrier", true}, {"key_block", block}})
        .forward.peak_bytes;
  };
  for (const Int block : {1, 16, 64}) {
    const double slope =
        static_cast<double>(bytes(4096, block) - bytes(2048, block)) / (2048 * number);
    EXPECT_GE(slope, 2) << "z and ln T are kept";
    EXPECT_LE(slope, 4) << "and at most doubled while they grow";
  }
}

TEST(LossWork, EvenLargeRowsDoNotHoldAnArrayOverKeys) {
  const Int few =
      run("csa_indexer_loss", one_row(256, true, true), {{"barrier", false}}).backward.peak_bytes;
  const Int many =
      run("csa_indexer_loss", one_row(8192, true, true), {{"barrier", false}}).backward.peak_bytes;
  EXPECT_EQ(few, many);
}

TEST(LossWork, HeadChunksTradeBytesForKeysReadAgain) {
  const Int keys = 40;
  for (const Int chunk : {1, 2, 3, 4, 5}) {
    const Int times = ceil_of(heads, chunk);
    const Counted without = run("csa_indexer_loss", one_row(keys, true),
                                {{"barrier", false}, {"key_block", 8}, {"head_chunk", chunk}});
    EXPECT_EQ(without.forward.rows_fetched, 3 * keys * times) << "ln Z once, P twice";
    EXPECT_EQ(without.backward.rows_fetched, 3 * keys * times);
    const Counted with = run("csa_indexer_loss", one_row(keys, true),
                             {{"barrier", true}, {"key_block", 8}, {"head_chunk", chunk}});
    EXPECT_EQ(with.forward.rows_fetched, 2 * keys * times) << "ln Z once, P once";
    const Counted two_pass = run("csa_indexer_loss", one_row(keys, true), {{"head_chunk", chunk}});
    EXPECT_EQ(two_pass.forward.rows_fetched, keys * heads + keys * times)
        << "ln Z one head after another";
  }
  // Of a raw indexer: z once under a barrier; three passes over z without. The backward pulls back once more.
  for (const Int chunk : {1, 2, 3, 4}) {
    for (const bool barrier : {true, false}) {
      const Json schedule = {{"barrier", barrier}, {"key_block", 8}, {"head_chunk", chunk}};
      const Counted raw = run("csa_indexer_loss", one_row(keys, true, true), schedule);
      const Counted scored = run("csa_indexer_loss", one_row(keys, true), schedule);
      const Int passes = barrier ? 1 : 3, rows = keys * ceil_of(index_heads, chunk);
      EXPECT_EQ(raw.forward.rows_fetched - scored.forward.rows_fetched, passes * rows);
      EXPECT_EQ(raw.backward.rows_fetched - scored.backward.rows_fetched, (passes + 1) * rows);
      EXPECT_EQ(raw.forward.score_evaluations, passes * keys * index_heads);
      EXPECT_EQ(raw.backward.score_evaluations, (passes + 1) * keys * index_heads);
      EXPECT_EQ(raw.forward.evaluations, scored.forward.evaluations);
    }
  }
}

// indexer_scores: A·K evaluations whatever the schedule; a block of keys at a time is all it holds.
TEST(ScoreWork, CountsAndBytes) {
  const auto scores = [](Int keys, Json schedule) {
    Problem problem;
    problem.schedule = std::move(schedule);
    support::put_in(problem, "q", filled("q", {1, 1, index_heads, width}));
    support::put_in(problem, "k", filled("k", {1, keys, width}));
    support::put_in(problem, "w", filled("w", {1, 1, index_heads}));
    support::put_cot(problem, "scores", filled("cot", {1, 1, keys}));
    const Result result = operation("indexer_scores")
                              .evaluate(problem, {.precision = Precision::f64, .backward = true});
    return Counted{result.forward, result.backward};
  };
  for (const Int chunk : {0, 1, 3}) {
    const Int c = chunk == 0 ? index_heads : chunk;
    for (const Int keys : {32, 500}) {
      const Counted counted = scores(keys, {{"head_chunk", chunk}, {"key_block", 16}});
      EXPECT_EQ(counted.forward.score_evaluations, keys * index_heads);
      EXPECT_EQ(counted.backward.score_evaluations, keys * index_heads);
      EXPECT_EQ(counted.forward.rows_fetched, keys * ceil_of(index_heads, c));
      EXPECT_EQ(counted.backward.rows_fetched, keys * ceil_of(index_heads, c));
      EXPECT_EQ(counted.forward.peak_bytes, number * (16 + width + c * width + c));
      // A key's queries are summed, weighted, before they meet its cotangent.
      EXPECT_EQ(counted.backward.peak_bytes, number * (16 + width + c * width + c + c + width));
    }
  }
}

}  // namespace
}  // namespace plumbline
