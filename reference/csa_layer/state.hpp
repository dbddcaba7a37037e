// reference/csa_layer/state.hpp
//
// A layer that sees its tokens a few at a time: what it keeps of one sequence, and one call. The state holds what the
// stages of the whole layer would give (window keys, blocks, indexer keys) and the tokens that are in no block yet,
// so a call is the whole layer with those given; nothing is written twice.
// Guarantees: tokens enter before any row attends; a block is pooled by the same text as in a whole sequence, from
// the same tokens, behind the same block.
#pragma once
#include "reference/csa_layer/layer.hpp"
#include "reference/layer/calls.hpp"

namespace plumbline::csa_layer {

template <class T> struct Pool {      // of one compressor
  Array<T> blocks;                    // [1, floor(P/m), D]
  Array<T> partial_kv, partial_gate;  // [1, m, lanes·D], raw
  Array<T> prior_kv, prior_gate;      // the same of the last block; two lanes only
};

template <class T> struct State {  // of one sequence
  std::int64_t length = 0;
  Array<T> kv;  // [1, P, D]
  Pool<T> pool, indexer;
  bool prior_present = false;
  std::vector<std::int32_t> positions, segments;  // length of them
};

// Where one compressor stands in a sequence whose new tokens begin at `before`.
struct Entering {
  std::int64_t before, m;
  const std::vector<std::int32_t>&positions, &segments;  // of all tokens, the new ones too
  bool prior_present;

  std::int64_t blocks() const { return before / m; }
  std::int64_t begin() const { return blocks() * m; }  // the first token of the partial block
  std::int64_t end() const { return static_cast<std::int64_t>(positions.size()); }
  // The last block of an earlier call stands in lane A of the first of this one.
  bool follows(csa_compress::Boundary boundary) const {
    if (!prior_present || blocks() == 0 || begin() >= end()) return false;
    const auto first = static_cast<std::size_t>(begin()),
               last = static_cast<std::size_t>(begin() - m);
    return boundary == csa_compress::Boundary::positions
               ? std::int64_t{positions[first]} == std::int64_t{positions[last]} + m
               : segments[first] == segments[last];
  }
};

// An empty state with room for `capacity` tokens.
template <class T>
State<T> empty_state(const Sizes& sizes, const Options& options, std::int64_t capacity);

// The tokens enter the state, then the rows attend. rows: row_index among all tokens so far (every new token when it
// is absent), and, where the whole layer has them, valid, mask and row_mask of those rows.
template <class T> Outputs<T> advance(const Inputs& weights, const Options& options, const Run& run,
                                      const layer::NewTokens& tokens, const MaskInputs& rows,
                                      State<T>& state);

// The outputs of all calls together, before the first of them.
template <class T>
Outputs<T> whole_outputs(const Sizes& sizes, const Options& options, const Run& run);

}  // namespace plumbline::csa_layer
