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
