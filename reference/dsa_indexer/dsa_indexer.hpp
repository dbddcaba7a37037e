// reference/dsa_indexer/dsa_indexer.hpp
//
// The lightning indexer of DeepSeek-V3.2, from x and the query latent to scores and the selected tokens;
// docs/ops/dsa_indexer.md.
//     index_q = rope(q_latent·wq_b), index_k = rope(layer_norm(x·wk)), index_w = x·weights_proj; scores; top-k
// Guarantees: value and gradient in T for every input. Query rows stand at their tokens (row_index), so T may be
// less than S. A token that no real row reads may hold anything and changes nothing but its own index_q, index_k and
// index_w. Selection is constant under differentiation; a cotangent at a hidden score is not read.
// Source: DeepSeek-V3.2 report, equation 1; half-split rotary on the leading channels as in its corrected code.
#pragma once
#include "reference/indexer/selection_rows.hpp"
#include "reference/rms_norm/options.hpp"
#include "reference/rope/options.hpp"

namespace plumbline::dsa_indexer {

// The rotary embedding of this indexer turns the leading channels in half-split pairs unless told otherwise.
inline RopeOptions default_rope() {
  RopeOptions rope;
  rope.placement = Placement::leading;
  rope.pairing = Pairing::half;
  return rope;
}

struct Options : indexer::Choice {
  ScoreScale score_scale = ScoreScale::heads_and_dim;
  double eps = default_norm_eps;
  RopeOptions rope = default_rope();
  MaskOptions mask;

  template <class Visitor> void fields(Visitor& v) {
    v("k", k, "tokens to select; required");
    v("tie", tie, "equal scores: exactly k, lower index first; or every score >= the k-th");
    v("score_scale", score_scale, "factor of the score: (A e)^-1/2, e^-1/2 or 1");
    v("eps", eps, "of the layer norm of the keys");
    v("rope", rope, "rotary embedding of queries and keys");
    v("mask", mask, "who sees whom");
  }
};

struct Inputs {
  StoredTensor x, q_latent, wq_b, wk, k_norm_weight, k_norm_bias, weights_proj;
  indexer::Given given;
  MaskInputs mask;

  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "B S E", "tokens");
    v.required_differentiable("q_latent", q_latent, "B S Rq", "query latent of the main attention");
    v.required_differentiable("wq_b", wq_b, "Rq A e", "from the query latent to indexer queries");
    v.required_differentiable("wk", wk, "E e", "to indexer keys");
    v.required_differentiable("k_norm_weight", k_norm_weight, "e",
                              "weight of the keys' layer norm");
    v.required_differentiable("k_norm_bias", k_norm_bias, "e", "its bias");
    v.required_differentiable("weights_proj", weights_proj, "E A", "to the head weights");
    v.given("index_q", given.index_q, "B S A e", "indexer queries");
    v.given("index_k", given.index_k, "B S e", "indexer keys");
    v.given("index_w", given.index_w, "B S A", "head weights");
    v.given("scores", given.scores, "B T S", "scores, which top-k then takes");
    v.given_integers("indices", given.indices, "B T k", "the selection");
    v.given_booleans("selected", given.selected, "B T S", "the selection as a set");
    mask.fields(v, "S");
  }
};

struct Cotangents {
  StoredTensor index_q, index_k, index_w, scores;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("index_q", index_q, "B S A e", "of the indexer queries");
    v.optional("index_k", index_k, "B S e", "of the indexer keys");
    v.optional("index_w", index_w, "B S A", "of the head weights");
    v.optional("scores", scores, "B T S", "of the scores; not read at hidden ones");
  }
};

template <class T> struct Outputs {
  Array<T> index_q, index_k, index_w, scores;
  Array<std::int32_t> indices;
  Array<std::uint8_t> selected;
  template <class Visitor> void fields(Visitor& v) {
    v("index_q", index_q, "B S A e", "indexer queries, rotated");
    v("index_k", index_k, "B S e", "indexer keys, normed and rotated");
    v("index_w", index_w, "B S A", "head weights");
    v.on_request("scores", scores, "B T S", "scores, -inf at hidden keys");
    v("indices", indices, "B T k", "selected tokens, best first, -1 after the visible ones");
    v.on_request("selected", selected, "B T S", "the selected tokens as a set");
  }
};
template <class T> struct Gradients {
  Array<T> x, q_latent, wq_b, wk, k_norm_weight, k_norm_bias, weights_proj;
  template <class Visitor> void fields(Visitor& v) {
    v("x", x), v("q_latent", q_latent), v("wq_b", wq_b), v("wk", wk),
        v("k_norm_weight", k_norm_weight);
    v("k_norm_bias", k_norm_bias), v("weights_proj", weights_proj);
  }
};

struct Op {
  using Options = dsa_indexer::Options;
  using Inputs = dsa_indexer::Inputs;
  using Cotangents = dsa_indexer::Cotangents;
  template <class T> using Outputs = dsa_indexer::Outputs<T>;
  template <class T> using Gradients = dsa_indexer::Gradients<T>;
  static constexpr std::string_view name = "dsa_indexer";
  static constexpr std::string_view summary =
      "the DeepSeek-V3.2 indexer: scores of tokens and the selected ones";
  static constexpr std::string_view formula =
      "index_q = rope(q_latent wq_b), index_k = rope(layer_norm(x wk)), index_w = x weights_proj; "
      "scores; top-k";
  static constexpr std::string_view honours[] = {"head_chunk"};
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::dsa_indexer
