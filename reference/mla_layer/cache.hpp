// reference/mla_layer/cache.hpp
//
// A layer that sees its tokens a few at a time: what it keeps of one sequence, and one call. The caches hold what
// the stages of the whole layer would give (kv_latent, k_pe, the indexer's keys), so a call is the whole layer with
// those given; nothing is written twice.
#pragma once
#include "reference/layer/calls.hpp"
#include "reference/mla_layer/layer.hpp"

namespace plumbline::mla_layer {

template <class T> struct Cache {  // of one sequence
  std::int64_t length = 0;
  Array<T> kv_latent, k_pe, index_k;              // [1, P, …]; index_k only with an indexer
  std::vector<std::int32_t> positions, segments;  // length of them
};

// The tokens enter the caches, then the rows attend. rows: row_index among all tokens so far (every new token when it
// is absent), and, where the whole layer has them, valid, mask and row_mask of those rows.
template <class T> Outputs<T> advance(const Inputs& weights, const Options& options, const Run& run,
                                      const layer::NewTokens& tokens, const MaskInputs& rows,
                                      Cache<T>& cache);

// The outputs of all calls together, before the first of them; letter K: keys that planes range over.
template <class T>
Outputs<T> whole_outputs(const Sizes& sizes, const Options& options, const Run& run);

}  // namespace plumbline::mla_layer
