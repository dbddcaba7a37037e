// properties/indexer_loss_symmetry_property.cpp
//
// Two ways to write down the same training row: selected or visible, dense or by slots, tokens or blocks of one,
// documents side by side or one by one, heads, batches and blocks in another order, rows picked or all.
#include <algorithm>

#include "properties/loss_check.hpp"

namespace plumbline::properties {
namespace {

using support::Distribution;
using support::property;
using Int = std::int64_t;
using List = std::vector<Int>;

void count(Distribution& d, const LossCase& loss) {
  d.needs("empty rows", loss.empty_row());
  d.notes("straddling blocks", loss.straddles());
  d.notes("fewer keys than seen", loss.fewer_than_seen());
  d.notes("tokens", !loss.blocks);
}

TEST(IndexerLoss, DenseIsSparseWithEverythingVisibleSelected) {
  property([](Distribution& d) {
    LossWish wish;
    wish.sparse = false;
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("straddling blocks", loss.straddles());
    Problem sparse = loss.problem;
    sparse.options["sparse"] = true;
    sparse.options["restrict"] = support::chance(50) ? "after_softmax" : "before_softmax";
    support::put_in(sparse, "selected", support::bools({loss.B, loss.T, loss.K}, loss.visible));
    same_bits(evaluate_f64(loss, sparse), evaluate_f64(loss, loss.problem));
  });
}

TEST(IndexerLoss, SlotsAreDense) {
  property([](Distribution& d) {
    LossWish wish;
    wish.slots = true;
    wish.sparse = true;
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("-1 before a used slot", loss.gap());
    d.needs("fewer keys than seen", loss.fewer_than_seen());
    Problem dense = loss.problem;
    dense.options["layout"] = "dense";
    const auto spread =
        [&](const Numbers& by_slot) {  // cells without a slot: NaN, nobody looks there
          Numbers cells(static_cast<std::size_t>(loss.B * loss.T * loss.K), std::nan(""));
          for (std::size_t i = 0; i < by_slot.size(); ++i) {
            const auto row = static_cast<Int>(i) / loss.k;
            if (loss.index[i] >= 0)
              cells[static_cast<std::size_t>(row * loss.K + loss.index[i])] = by_slot[i];
          }
          return cells;
        };
    if (!loss.raw) {
      const Numbers scores = support::numbers_of(loss.problem.in.at("scores"));
      support::put_in(dense, "scores", support::f64s({loss.B, loss.T, loss.K}, spread(scores)));
    }
    const Result slots = evaluate_f64(loss, loss.problem), wide = evaluate_f64(loss, dense);
    for (const char* name : {"loss", "row_loss", "row_valid", "log_mass"}) {
      RC_ASSERT(support::difference({support::output(slots, name)}, {support::output(wide, name)})
                    .empty());
    }
    const auto compare = [&](const Value& by_slot, const Value& by_key) {
      for (Int row = 0; row < loss.B * loss.T; ++row) {
        for (Int slot = 0; slot < loss.k; ++slot) {
          const Int key = loss.key_at(row / loss.T, row % loss.T, slot);
          const double found = by_slot.high[static_cast<std::size_t>(row * loss.k + slot)];
          RC_ASSERT(found ==
                    (key < 0 ? 0 : by_key.high[static_cast<std::size_t>(row * loss.K + key)]));
        }
      }
    };
    for (const char* name : {"head_sum", "target", "student"}) {
      compare(support::output(slots, name), support::output(wide, name));
    }
    if (loss.raw) {
      RC_ASSERT(support::difference(slots.gradients, wide.gradients).empty());
    } else {
      compare(support::gradient(slots, "scores"), support::gradient(wide, "scores"));
    }
  });
}

// Blocks of one token on either grid are tokens with one key head; also under the same preset and mask.
TEST(IndexerLoss, TokensAreBlocksOfOne) {
  property([](Distribution& d) {
    LossWish wish;
    wish.blocks = false;
    wish.padding = false;
    LossCase loss = draw_loss_case(wish);
    count(d, loss);
    // Where a document returns with its positions, blocks are ordered by position and tokens by place.
    if (loss.documents) loss.problem.in.erase("positions");
    take_in(loss.problem, "key", 2, {0});  // key head 0 for all
    Problem blocks = loss.problem;
    StoredTensor key = blocks.in.at("key");
    blocks.in.erase("key");
    key.shape = {loss.B, loss.S, loss.D};
    key.stride = row_major(key.shape);
    support::put_in(blocks, "compressed", key);
    blocks.options["m"] = 1;
    blocks.options["S"] = loss.S;
    LossCase as_blocks = loss;
    as_blocks.blocks = true;
    same_bits(evaluate_f64(as_blocks, blocks), evaluate_f64(loss, loss.problem));
  });
}

// A constant on all visible scores of a row. Scores and constants are multiples of 1/16: not one bit may change.
TEST(IndexerLoss, ShiftingARowsScoresChangesNothing) {
  property([](Distribution& d) {
    LossWish wish;
    wish.raw = false;
    wish.contents = {Contents::dyadic, Contents::integers};
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    support::Stream stream(loss.seed, "shift");
    Numbers scores = support::numbers_of(loss.problem.in.at("scores"));
    const auto width = static_cast<std::size_t>(std::max<Int>(loss.plane(), 1));
    for (std::size_t row = 0; row < scores.size() / width; ++row) {
      const double shift = 512 * stream.real(Contents::dyadic);
      for (std::size_t i = 0; i < width; ++i) scores[row * width + i] += shift;
    }
    Problem shifted = loss.problem;
    support::put_in(shifted, "scores", support::f64s({loss.B, loss.T, loss.plane()}, scores));
    same_bits(evaluate_f64(loss, shifted), evaluate_f64(loss, loss.problem));
  });
}

TEST(IndexerLoss, OrderOfHeadsAndBatchesDoesNotMatter) {
  property([](Distribution& d) {
    LossWish wish;
    if (support::chance(70)) wish.batch = 3;
    if (wish.batch == 3) wish.document_grid = false;
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("batches", loss.B > 1);
    d.needs("heads", loss.H > 1);
    support::Stream stream(loss.seed, "order");
    const List batch = stream.shuffled(loss.B), indexer = stream.shuffled(loss.A),
               groups = stream.shuffled(loss.Hk);
    List heads;  // heads of one key head stay together
    const Int group = loss.H / loss.Hk;
    for (const Int g : groups) {
      for (const Int h : stream.shuffled(group)) heads.push_back(g * group + h);
    }
    Problem moved = loss.problem;
    take_in(moved, "query", 2, heads), take_in(moved, "sink", 0, heads);
    if (!loss.blocks) take_in(moved, "key", 2, groups);
    take_in(moved, "index_q", 2, indexer), take_in(moved, "index_w", 2, indexer);
    for (const auto& [name, tensor] : loss.problem.in) {
      if (name != "sink" && name != "row_index" && name != "cu_seqlens")
        take_in(moved, name, 0, batch);
    }
    if (const auto cot = moved.cot.find("row_loss"); cot != moved.cot.end()) {
      support::put_cot(moved, "row_loss", support::take(cot->second, 0, batch));
    }
    Typed<f192> expected = evaluate<f192>(loss);
    for (auto& [name, array] : expected.outputs) {
      if (name == "log_mass") array = take(array, 2, heads);
      if (name != "loss") array = take(array, 0, batch);
    }
    for (auto& [name, array] : expected.gradients) {
      if (name == "index_q" || name == "index_w") array = take(array, 2, indexer);
      array = take(array, 0, batch);
    }
    holds(agreement(evaluate<f192>(loss, moved), expected), high_digits);
  });
}

// Rows picked by row_index are those rows of the whole, bit by bit; gradients of keys are sums over the rows picked.
TEST(IndexerLoss, PickedRowsAreRowsOfTheWhole) {
  property([](Distribution& d) {
    LossWish wish;
    wish.placed = false;
    wish.presets = false;
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    support::Stream stream(loss.seed, "picked");
    List rows = stream.shuffled(loss.T);
    rows.resize(static_cast<std::size_t>(support::pick(0, loss.T)));
    d.needs("some of the rows", !rows.empty() && rows.size() < static_cast<std::size_t>(loss.T));
    const auto count_of_rows = static_cast<Int>(rows.size());
    Numbers whole_cot(static_cast<std::size_t>(loss.B * loss.T), 0), cot;
    for (Int b = 0; b < loss.B; ++b) {
      for (const Int t : rows)
        cot.push_back(whole_cot[static_cast<std::size_t>(b * loss.T + t)] =
                          stream.real(Contents::dyadic));
    }
    Problem whole = loss.problem, picked = loss.problem;
    whole.cot.clear(), picked.cot.clear();
    support::put_cot(whole, "row_loss", support::f64s({loss.B, loss.T}, whole_cot));
    support::put_cot(picked, "row_loss", support::f64s({loss.B, count_of_rows}, cot));
    for (const char* name : {"query", "scores", "index_q", "index_w", "selected", "indices",
                             "valid", "mask", "row_mask"}) {
      take_in(picked, name, 1, rows);
    }
    picked.options["S"] = loss.S;
    Integers tokens;
    for (const Int t : rows) tokens.push_back(static_cast<std::int32_t>(t));
    support::put_in(picked, "row_index", support::i32s({count_of_rows}, tokens));

    const Typed<f192> found = evaluate<f192>(loss, picked);
    Typed<f192> expected = evaluate<f192>(loss, whole);
    for (auto& [name, array] : expected.outputs) {
      if (name != "loss") array = take(array, 1, rows);
    }
    expected.outputs.erase("loss");
    for (auto& [name, array] : expected.gradients) {
      if (name != "index_k") array = take(array, 1, rows);
    }
    for (const auto& [name, array] : expected.outputs) {
      holds(support::agreement(found.out(name), array, name, 0), support::all_digits);
    }
    holds(agreement(found.gradients, expected.gradients), high_digits);
  });
}

// One segment and documents true: positions alone decide, so blocks may lie in any order.
TEST(IndexerLoss, BlocksMovedWithTheirPositions) {
  property([](Distribution& d) {
    LossWish wish;
    wish.blocks = true;
    wish.document_grid = false;
    wish.documents = false;
    wish.joint = false;  // windows go by token, not by position
    wish.sparse = support::chance(50);
    wish.by_index = false;
    wish.placed = false;
    wish.causal_only = true;
    const LossCase drawn = draw_loss_case(wish);
    // Every token is a row's; tokens after the last block stay where they are.
    LossCase loss = drawn;
    loss.problem.in.erase("positions");
    Integers zero(static_cast<std::size_t>(loss.B * loss.S), 0);
    support::put_in(loss.problem, "segment_ids", support::i32s({loss.B, loss.S}, zero));
    loss.problem.options["mask"]["documents"] = true;
    count(d, loss);
    d.needs("several blocks", loss.K > 1);
    support::Stream stream(loss.seed, "moved");
    const List order = stream.shuffled(loss.K);  // the block that lies at place j
    List token;                                  // the token that lies at place s
    for (const Int block : order) {
      for (Int i = 0; i < loss.m; ++i) token.push_back(block * loss.m + i);
    }
    for (Int s = loss.K * loss.m; s < loss.S; ++s) token.push_back(s);
    Problem moved = loss.problem;
    Integers positions, rows;
    for (Int b = 0; b < loss.B; ++b) {
      for (const Int s : token) positions.push_back(static_cast<std::int32_t>(s));
    }
    for (const Int s : inverse(token)) rows.push_back(static_cast<std::int32_t>(s));
    support::put_in(moved, "positions", support::i32s({loss.B, loss.S}, positions));
    support::put_in(moved, "row_index",
                    support::i32s({loss.S}, rows));  // row t stays at position t
    take_in(moved, "compressed", 1, order), take_in(moved, "index_k", 1, order);
    for (const char* name : {"scores", "selected", "valid", "mask"}) take_in(moved, name, 2, order);

    Typed<f192> expected = evaluate<f192>(loss);
    for (const char* name : {"head_sum", "target", "student"}) {
      expected.outputs.at(name) = take(expected.outputs.at(name), 2, order);
    }
    if (!loss.raw)
      expected.gradients.at("scores") = take(expected.gradients.at("scores"), 2, order);
    if (loss.raw)
      expected.gradients.at("index_k") = take(expected.gradients.at("index_k"), 1, order);
    holds(agreement(evaluate<f192>(loss, moved), expected), high_digits);
  });
}

// Several documents in one call are the documents one by one: on the document grid, or where m divides their lengths.
TEST(IndexerLoss, DocumentsTogetherAreDocumentsApart) {
  property([](Distribution& d) {
    LossWish wish;
    wish.document_grid = true;
    wish.documents = false;  // cut below
    wish.batch = 1;
    wish.placed = wish.cell_masks = wish.presets = false;
    wish.by_index = false;
    wish.causal_only = true;
    LossCase loss = draw_loss_case(wish);
    loss.problem.in.erase("positions");
    support::Stream stream(loss.seed, "cut");
    const bool physical = loss.blocks && support::chance(40);
    List bounds{0};
    while (bounds.back() < loss.S)
      bounds.push_back(std::min(loss.S, bounds.back() + stream.pick(1, 5)));
    if (physical) {  // whole blocks only; what is left over is a document without a block
      for (Int& bound : bounds) bound = bound == loss.S ? bound : bound / loss.m * loss.m;
      loss.problem.options["grid"] = "physical";
    }
    List blocks{0};  // keys before each document
    for (std::size_t i = 1; i < bounds.size(); ++i) {
      blocks.push_back(blocks.back() + (loss.blocks ? (bounds[i] - bounds[i - 1]) / loss.m
                                                    : bounds[i] - bounds[i - 1]));
    }
    const List keys =
        support::range(0, blocks.back());  // of the one grid drawn, as many as the documents have
    Problem together = loss.problem;
    take_in(together, loss.key_name(), 1, keys), take_in(together, "index_k", 1, keys);
    take_in(together, "scores", 2, keys), take_in(together, "selected", 2, keys);
    Integers lengths;
    for (const Int bound : bounds) lengths.push_back(static_cast<std::int32_t>(bound));
    support::put_in(together, "cu_seqlens",
                    support::i32s({static_cast<Int>(lengths.size())}, lengths));
    together.cot.clear();
    support::put_cot(together, "row_loss",
                     support::f64s({1, loss.T}, stream.reals(loss.T, Contents::dyadic)));
    d.needs("several documents", bounds.size() > 2);
    d.notes("tokens", !loss.blocks);
    d.notes("window", loss.joint && loss.window > 1);

    const Typed<f192> whole = evaluate<f192>(loss, together);
    for (std::size_t i = 1; i < bounds.size(); ++i) {
      const List tokens = support::range(bounds[i - 1], bounds[i]),
                 own = support::range(blocks[i - 1], blocks[i]);
      Problem alone = together;
      alone.in.erase("cu_seqlens");
      alone.options.erase("S");
      for (const char* name : {"query", "scores", "index_q", "index_w", "selected", "kv"})
        take_in(alone, name, 1, tokens);
      take_in(alone, loss.key_name(), 1, own), take_in(alone, "index_k", 1, own);
      take_in(alone, "scores", 2, own), take_in(alone, "selected", 2, own);
      support::put_cot(alone, "row_loss", support::take(together.cot.at("row_loss"), 1, tokens));
      Typed<f192> expected = whole;
      for (auto& [name, array] : expected.outputs) {
        if (name == "loss") continue;
        array = take(array, 1, tokens);
        if (name == "head_sum" || name == "target" || name == "student")
          array = take(array, 2, own);
      }
      expected.outputs.erase("loss");
      for (auto& [name, array] : expected.gradients) {
        array = take(array, 1, name == "index_k" ? own : tokens);
        if (name == "scores") array = take(array, 2, own);
      }
      Typed<f192> found = evaluate<f192>(loss, alone);
      found.outputs.erase("loss");
      holds(agreement(found, expected), high_digits);
    }
  });
}

}  // namespace
}  // namespace plumbline::properties
