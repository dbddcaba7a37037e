// reference/indexer_scores/indexer_scores.hpp
//
// The lightning indexer's scores, score[b,t,s] = c · Σ_a w[b,t,a] · relu(q[b,t,a]·k[b,s]); docs/ops/indexer_scores.md.
// Guarantees: value and gradient in T; ReLU has derivative 0 at 0; schedules head_chunk and key_block change the
// order of work and the memory of a row, never the function.
// Source: DeepSeek-V3.2 report, equation 1.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "reference/indexer_scores/score_row.hpp"
#include "reference/operation/run.hpp"
#include "reference/tensor/sizes.hpp"

namespace plumbline::indexer_scores {

struct Options {
  ScoreScale scale = ScoreScale::heads_and_dim;
  bool relu = true;

  template <class Visitor> void fields(Visitor& v) {
    v("score_scale", scale, "factor of the score: (A e)^-1/2, e^-1/2 or 1");
    v("relu", relu, "ReLU before the sum over heads");
  }
};

struct Inputs {
  StoredTensor q, k, w;
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("q", q, "B T A e", "indexer queries");
    v.required_differentiable("k", k, "B K e", "indexer keys");
    v.required_differentiable("w", w, "B T A", "head weights; may be negative");
  }
};

struct Cotangents {
  StoredTensor scores;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("scores", scores, "B T K", "of the scores");
  }
};

template <class T> struct Outputs {
  Array<T> scores;
  template <class Visitor> void fields(Visitor& v) {
    v("scores", scores, "B T K", "the scores, unmasked");
  }
};
template <class T> struct Gradients {
  Array<T> q, k, w;
  template <class Visitor> void fields(Visitor& v) { v("q", q), v("k", k), v("w", w); }
};

struct Op {
  using Options = indexer_scores::Options;
  using Inputs = indexer_scores::Inputs;
  using Cotangents = indexer_scores::Cotangents;
  template <class T> using Outputs = indexer_scores::Outputs<T>;
  template <class T> using Gradients = indexer_scores::Gradients<T>;
  static constexpr std::string_view name = "indexer_scores";
  static constexpr std::string_view summary = "scores of the lightning indexer";
  static constexpr std::string_view formula =
      "score[b,t,s] = c sum_a w[b,t,a] relu(q[b,t,a] . k[b,s])";
  static constexpr std::string_view honours[] = {"head_chunk", "key_block"};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::indexer_scores
