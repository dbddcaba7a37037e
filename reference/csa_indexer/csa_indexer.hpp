// reference/csa_indexer/csa_indexer.hpp
//
// The lightning indexer of DeepSeek-V4, from x and the query latent to scores of blocks and the selected ones;
// docs/ops/csa_indexer.md.
//     index_q = rope(q_latent·q_proj), index_k = csa_compress(x·kv_proj, x·gate_proj), index_w = x·weights_proj;
//     scores; top-k over visible blocks
// Guarantees: value and gradient in T for every input. Query rows stand at their tokens (row_index), so T may be less
// than S. A token that no real row and no visible block reads may hold anything and changes nothing but its own
// index_q and index_w and the index_k of blocks that nobody sees. Selection is constant under differentiation; a
// cotangent at a hidden score is not read.
// Source: DeepSeek-V4 report, compressed sparse attention; equation 16 is the score.
#pragma once
#include "reference/csa_indexer/options.hpp"

namespace plumbline::csa_indexer {

struct Inputs {
  StoredTensor x, q_latent, q_proj, kv_proj, gate_proj, position_bias, kv_norm_weight, weights_proj;
  indexer::Given given;
  MaskInputs mask;

  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "B S E", "tokens");
    v.required_differentiable("q_latent", q_latent, "B S Rq", "query latent of the main attention");
    v.required_differentiable("q_proj", q_proj, "Rq A e", "from the query latent to queries");
    v.required_differentiable("kv_proj", kv_proj, "E 2e", "to the values that are pooled");
    v.required_differentiable("gate_proj", gate_proj, "E 2e", "to their gates");
    v.required_differentiable("position_bias", position_bias, "m 2e",
                              "added to the gate of token i of a block");
    v.required_differentiable("kv_norm_weight", kv_norm_weight, "e", "weight of the keys' norm");
    v.required_differentiable("weights_proj", weights_proj, "E A", "to the head weights");
    v.given("index_q", given.index_q, "B S A e", "indexer queries");
    v.given("index_k", given.index_k, "B N e", "indexer keys");
    v.given("index_w", given.index_w, "B S A", "head weights");
    v.given("scores", given.scores, "B T N", "scores, which top-k then takes");
    v.given_integers("indices", given.indices, "B T k", "the selection");
    v.given_booleans("selected", given.selected, "B T N", "the selection as a set");
    mask.fields(v, "N");
  }
};

struct Cotangents {
  StoredTensor index_q, index_k, index_w, scores;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("index_q", index_q, "B S A e", "of the indexer queries");
    v.optional("index_k", index_k, "B N e", "of the indexer keys");
    v.optional("index_w", index_w, "B S A", "of the head weights");
    v.optional("scores", scores, "B T N", "of the scores; not read at hidden ones");
  }
};

template <class T> struct Outputs {
  Array<T> index_q, index_k, index_w, scores;
  Array<std::int32_t> indices;
  Array<std::uint8_t> selected;
  template <class Visitor> void fields(Visitor& v) {
    v("index_q", index_q, "B S A e", "indexer queries, rotated");
    v("index_k", index_k, "B N e", "indexer keys: pooled, normed and rotated");
    v("index_w", index_w, "B S A", "head weights");
    v.on_request("scores", scores, "B T N", "scores, -inf at hidden blocks");
    v("indices", indices, "B T k", "selected blocks, best first, -1 after the visible ones");
    v.on_request("selected", selected, "B T N", "the selected blocks as a set");
  }
};
template <class T> struct Gradients {
  Array<T> x, q_latent, q_proj, kv_proj, gate_proj, position_bias, kv_norm_weight, weights_proj;
  template <class Visitor> void fields(Visitor& v) {
    v("x", x), v("q_latent", q_latent), v("q_proj", q_proj), v("kv_proj", kv_proj);
    v("gate_proj", gate_proj), v("position_bias", position_bias);
    v("kv_norm_weight", kv_norm_weight), v("weights_proj", weights_proj);
  }
};

struct Op {
  using Options = csa_indexer::Options;
  using Inputs = csa_indexer::Inputs;
  using Cotangents = csa_indexer::Cotangents;
  template <class T> using Outputs = csa_indexer::Outputs<T>;
  template <class T> using Gradients = csa_indexer::Gradients<T>;
  static constexpr std::string_view name = "csa_indexer";
  static constexpr std::string_view summary =
      "the DeepSeek-V4 indexer: scores of blocks and the selected ones";
  static constexpr std::string_view formula =
      "index_q = rope(q_latent q_proj), index_k = csa_compress(x kv_proj, x gate_proj), index_w = "
      "x "
      "weights_proj; scores; top-k over blocks";
  static constexpr std::string_view honours[] = {"head_chunk", "step"};
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::csa_indexer
