// reference/mla_step/mla_step.hpp
//
// One call of a server: L new tokens of each sequence enter the caches of an MLA layer, then their rows attend;
// docs/ops/mla_step.md.
// Guarantees: forward only. The rows are those the whole layer gives for the same tokens. A cache is never read
// beyond its sequence's length, and comes back with zeros there. All L tokens enter before any row attends.
// Errors: length + L > P, a negative length, valid, row_mask, mask, row_index or cu_seqlens, causal false, a loss; those
// of the layer.
// Source: DeepSeek-V3.2 report, section 2.1; what each cache holds: docs/ops/mla_layer.md.
#pragma once
#include "reference/mla_layer/cache.hpp"

namespace plumbline::mla_step {

struct Inputs {
  mla_layer::Inputs layer;
  StoredTensor positions, segment_ids;
  MaskInputs refused;
  StoredTensor length, kv_latent, k_pe, index_k, old_positions, old_segments;

  template <class Visitor> void fields(Visitor& v) {
    v.required("x", layer.projection.x, "B L E", "new tokens");
    v.booleans("valid", refused.valid, "B L P",
               "not taken: what later calls see cannot depend on it");
    v.booleans("row_mask", refused.row_mask, "B L", "not taken");
    v.optional("mask", refused.mask, "B L P", "not taken");
    v.integers("row_index", refused.row_index, "L", "not taken");
    v.integers("cu_seqlens", refused.cu_seqlens, "n+1",
               "not taken: positions and segment_ids say it");
    v.integers("positions", positions, "B L", "their positions; default length[b] + i");
    v.integers("segment_ids", segment_ids, "B L", "their documents; default 0");
    v.integers("state.length", length, "B", "tokens in the caches of each sequence; required");
    v.required("state.kv_latent", kv_latent, "B P Rkv", "key-value latents after their norm");
    v.required("state.k_pe", k_pe, "B P dr", "rotary keys after rotation");
    v.optional("state.indexer_index_k", index_k, "B P e", "indexer keys; with an indexer");
    v.integers("state.positions", old_positions, "B P", "positions of the tokens; required");
    v.integers("state.segment_ids", old_segments, "B P", "their documents; required");
    layer.weights(v);
  }
};

struct Cotangents {
  template <class Visitor> void fields(Visitor&) {}
};

template <class T> struct Outputs {
  mla_layer::Outputs<T> layer;
  Array<std::int32_t> length, positions, segments;
  Array<T> kv_latent, k_pe, index_k;

  template <class Visitor> void fields(Visitor& v) {
    layer.fields(v);
    v("state.length", length, "B", "tokens in the caches after the call");
    v("state.kv_latent", kv_latent, "B P Rkv", "latents, 0 beyond the length");
    v("state.k_pe", k_pe, "B P dr", "rotary keys, 0 beyond the length");
    v("state.indexer_index_k", index_k, "B P e", "indexer keys, 0 beyond the length");
    v("state.positions", positions, "B P", "positions, 0 beyond the length");
    v("state.segment_ids", segments, "B P", "documents, 0 beyond the length");
  }
};
template <class T> using Gradients = Cotangents;

struct Op {
  using Options = mla_layer::Options;
  using Inputs = mla_step::Inputs;
  using Cotangents = mla_step::Cotangents;
  template <class T> using Outputs = mla_step::Outputs<T>;
  template <class T> using Gradients = mla_step::Gradients<T>;
  static constexpr std::string_view name = "mla_step";
  static constexpr std::string_view summary =
      "one call of a server: new tokens through an MLA layer and its caches";
  static constexpr std::string_view formula =
      "output of mla_layer for the L new rows, over caches of what came before";
  static constexpr std::string_view honours[] = {"head_chunk", "key_block", "sliced", "absorbed"};
  static constexpr bool outputs_can_be_given = false;
  static bool takes(std::string_view input, const Options& options) {
    if (input.starts_with("state."))
      return options.indexer.has_value() || !input.starts_with("state.indexer_");
    return !layer::refused_in_calls(input) && mla_layer::Op::takes(input, options);
  }
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::mla_step
