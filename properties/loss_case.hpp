// properties/loss_case.hpp
//
// Random problems of the two indexer losses, with what SPEC says about each: which keys a row sees, which it trains
// on. Visibility is worked out here from the written rules, one comparison after the other, and shares nothing with
// reference/mask. Sizes are pairwise different where they can be, 0 and 1 included; -1 stands anywhere.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"

namespace plumbline::properties {

using support::Contents;
using support::Flags;
using support::Integers;
using support::Numbers;

struct LossWish {  // what a property needs; nothing = either
  std::optional<bool> blocks, raw, sparse, by_index, slots, joint, after_softmax, documents,
      document_grid;
  bool cell_masks = true;  // valid, float mask, row_mask
  bool placed = true;      // fewer rows than tokens, row_index, query_offset
  bool causal_only = false;
  bool padding = true;
  bool presets = true;  // any preset with any option changed; false: exact, sum
  bool infinite_sinks = true;
  std::vector<Contents> contents = {Contents::dyadic, Contents::bits, Contents::integers};
  std::int64_t most_tokens = 13, least_tokens = 0, batch = 0;
};

struct LossCase {
  bool blocks = false, raw = false, sparse = false, by_index = false, slots = false;
  bool causal = true, documents = false, document_grid = false, joint = false, sink_counts = false,
       after = false;
  std::int64_t B = 1, T = 0, S = 0, K = 0, H = 1, Hk = 1, D = 1, A = 1, e = 1, k = 0, m = 1,
               window = 0;
  std::optional<std::int64_t> padding;
  std::uint64_t seed = 0;
  std::vector<std::int64_t> token, first;                    // [T]; first token of each block
  std::vector<std::vector<std::int64_t>> position, segment;  // [B][S]
  Flags real;                                                // [B T]
  Flags structure, visible;  // [B T K]: by causality, documents, padding; and by valid and mask
  Flags trained;             // [B T K]: S_t of a real row
  Integers index;            // [B T k]
  Problem problem;

  std::string op() const { return blocks ? "csa_indexer_loss" : "dsa_indexer_loss"; }
  std::string key_name() const { return blocks ? "compressed" : "key"; }
  std::size_t cell(std::int64_t b, std::int64_t t, std::int64_t key) const {
    return static_cast<std::size_t>((b * T + t) * K + key);
  }
  bool is_real(std::int64_t b, std::int64_t t) const {
    return real[static_cast<std::size_t>(b * T + t)] != 0;
  }
  bool sees(std::int64_t b, std::int64_t t, std::int64_t key) const {
    return visible[cell(b, t, key)] != 0;
  }
  bool trains(std::int64_t b, std::int64_t t, std::int64_t key) const {
    return trained[cell(b, t, key)] != 0;
  }
  std::int64_t count(const Flags& cells, std::int64_t b, std::int64_t t) const;
  std::int64_t plane() const { return slots ? k : K; }
  // The key of a place in a [B, T, plane] tensor; -1 for a slot without a trained key.
  std::int64_t key_at(std::int64_t b, std::int64_t t, std::int64_t place) const;
  bool in_window(std::int64_t b, std::int64_t t, std::int64_t s) const;

  // Classes of the distribution.
  bool empty_row() const;        // a real row with nothing to train on
  bool straddles() const;        // a block with tokens of two segments
  bool fewer_than_seen() const;  // a real row trained on fewer keys than it sees
  bool gap() const;              // an empty slot before a used one
  bool unreal_row() const;
};

LossCase draw_loss_case(const LossWish& wish = {});

Json draw_schedule(const LossCase& loss);
bool ragged(const LossCase& loss,
            const Json& schedule);  // a last chunk or block shorter than the others

// The same problem with `poison` (and rubbish) in every hidden place.
Problem poisoned(const LossCase& loss, double poison);

std::string describe(const LossCase& loss);  // for the message of a failure

}  // namespace plumbline::properties
