// reference/csa_step/csa_step.hpp
//
// One call of a server: L new tokens of each sequence enter the state of a CSA layer, then their rows attend;
// docs/ops/csa_step.md.
// Guarantees: forward only. The rows are those the whole layer gives for the same tokens. The state is never read
// beyond its sequence's length: window keys and documents beyond it, blocks beyond floor(length/m), partial tokens
// beyond length mod m, a prior that is not present; it comes back with zeros there. All L tokens enter before any row
// attends, so the row that completes a block sees it.
// Errors: length + L > P, a negative length, valid, row_mask, mask, row_index or cu_seqlens, causal false, grid
// document, a loss; those of the layer.
// Source: DeepSeek-V4 report, section 2.3; what the state holds: docs/ops/csa_layer.md.
#pragma once
#include "reference/csa_layer/state.hpp"

namespace plumbline::csa_step {

// State tensors of one compressor.
struct PoolInputs {
  StoredTensor blocks, partial_kv, partial_gate, prior_kv, prior_gate;
};

struct Inputs {
  csa_layer::Inputs layer;
  StoredTensor positions, segment_ids;
  MaskInputs refused;
  StoredTensor length, kv, old_positions, old_segments, prior_present;
  PoolInputs pool, indexer;

  template <class Visitor> void fields(Visitor& v) {
    v.required("x", layer.x, "B L E", "new tokens");
    v.booleans("valid", refused.valid, "B L N",
               "not taken: what later calls see cannot depend on it");
    v.booleans("row_mask", refused.row_mask, "B L", "not taken");
    v.optional("mask", refused.mask, "B L N", "not taken");
    v.integers("row_index", refused.row_index, "L", "not taken");
    v.integers("cu_seqlens", refused.cu_seqlens, "n+1",
               "not taken: positions and segment_ids say it");
    v.integers("positions", positions, "B L", "their positions; default length[b] + i");
    v.integers("segment_ids", segment_ids, "B L", "their documents; default 0");
    v.integers("state.length", length, "B", "tokens in the state of each sequence; required");
    v.required("state.kv", kv, "B P D", "window keys");
    v.optional("state.compressed", pool.blocks, "B Q D", "blocks, Q = floor(P/m)");
    v.optional("state.partial_kv", pool.partial_kv, "B m C",
               "raw kv of the tokens in no block yet; C = 2D, with kind hca D");
    v.optional("state.partial_gate", pool.partial_gate, "B m C", "their raw gates");
    v.optional("state.prior_kv", pool.prior_kv, "B m C", "raw kv of the last block; kind csa");
    v.optional("state.prior_gate", pool.prior_gate, "B m C", "its raw gates; kind csa");
    v.booleans("state.prior_present", prior_present, "B", "there is a last block; kind csa");
    v.optional("state.indexer_index_k", indexer.blocks, "B Q e", "indexer keys");
    v.optional("state.indexer_partial_kv", indexer.partial_kv, "B m 2e", "as partial_kv");
    v.optional("state.indexer_partial_gate", indexer.partial_gate, "B m 2e", "as partial_gate");
    v.optional("state.indexer_prior_kv", indexer.prior_kv, "B m 2e", "as prior_kv");
    v.optional("state.indexer_prior_gate", indexer.prior_gate, "B m 2e", "as prior_gate");
    v.integers("state.positions", old_positions, "B P", "positions of the tokens; required");
    v.integers("state.segment_ids", old_segments, "B P", "their documents; required");
    layer.weights(v);
  }
};

struct Cotangents {
  template <class Visitor> void fields(Visitor&) {}
};

template <class T> struct PoolOutputs {
  Array<T> blocks, partial_kv, partial_gate, prior_kv, prior_gate;
};

template <class T> struct Outputs {
  csa_layer::Outputs<T> layer;
  Array<std::int32_t> length, positions, segments;
  Array<std::uint8_t> prior_present;
  Array<T> kv;
  PoolOutputs<T> pool, indexer;

  template <class Visitor> void fields(Visitor& v) {
    layer.fields(v);
    v("state.length", length, "B", "tokens in the state after the call");
    v("state.kv", kv, "B P D", "window keys, 0 beyond the length");
    v("state.compressed", pool.blocks, "B Q D", "blocks, 0 beyond their number");
    v("state.partial_kv", pool.partial_kv, "B m C", "tokens in no block, 0 beyond their number");
    v("state.partial_gate", pool.partial_gate, "B m C", "their gates");
    v("state.prior_kv", pool.prior_kv, "B m C", "the last block, 0 where there is none");
    v("state.prior_gate", pool.prior_gate, "B m C", "its gates");
    v("state.prior_present", prior_present, "B", "there is a last block");
    v("state.indexer_index_k", indexer.blocks, "B Q e", "indexer keys, 0 beyond their number");
    v("state.indexer_partial_kv", indexer.partial_kv, "B m 2e", "as partial_kv");
    v("state.indexer_partial_gate", indexer.partial_gate, "B m 2e", "as partial_gate");
    v("state.indexer_prior_kv", indexer.prior_kv, "B m 2e", "as prior_kv");
    v("state.indexer_prior_gate", indexer.prior_gate, "B m 2e", "as prior_gate");
    v("state.positions", positions, "B P", "positions, 0 beyond the length");
    v("state.segment_ids", segments, "B P", "documents, 0 beyond the length");
  }
};
template <class T> using Gradients = Cotangents;

struct Op {
  using Options = csa_layer::Options;
  using Inputs = csa_step::Inputs;
  using Cotangents = csa_step::Cotangents;
  template <class T> using Outputs = csa_step::Outputs<T>;
  template <class T> using Gradients = csa_step::Gradients<T>;
  static constexpr std::string_view name = "csa_step";
  static constexpr std::string_view summary =
      "one call of a server: new tokens through a CSA layer and its state";
  static constexpr std::string_view formula =
      "output of csa_layer for the L new rows, over the state of what came before";
  static constexpr std::string_view honours[] = {"head_chunk", "key_block"};
  static constexpr bool outputs_can_be_given = false;
  static bool takes(std::string_view input, const Options& options) {
    if (layer::refused_in_calls(input)) return false;
    if (!input.starts_with("state.")) return csa_layer::Op::takes(input, options);
    if (input.starts_with("state.indexer_")) return options.indexer.has_value();
    if (input.starts_with("state.prior_")) return options.kind == csa_layer::Kind::csa;
    const bool of_blocks = input == "state.compressed" || input.starts_with("state.partial_");
    return options.blocks() || !of_blocks;
  }
  template <class SizeOf> static std::optional<std::int64_t> derived(std::string_view letter,
                                                                     const Options& options,
                                                                     const SizeOf& size) {
    if (letter == "Q") return size("P") / *options.m;
    return csa_layer::Op::derived(letter, options, size);
  }
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::csa_step
