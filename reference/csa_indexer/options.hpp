// reference/csa_indexer/options.hpp: the options of the V4 indexer, and what a layer's `indexer` names of them;
// docs/ops/csa_indexer.md.
#pragma once
#include "reference/csa_compress/options.hpp"
#include "reference/indexer/selection_rows.hpp"

namespace plumbline::csa_indexer {

struct Options : indexer::Choice {
  std::optional<std::int64_t> m;
  double eps = default_norm_eps;
  RopeOptions rope;
  csa_compress::Boundary boundary = csa_compress::Boundary::positions;
  Grid grid = Grid::physical;
  ScoreScale score_scale = ScoreScale::heads_and_dim;
  MaskOptions mask;

  template <class Visitor> void fields(Visitor& v) {
    v("k", k, "blocks to select; required");
    v("tie", tie, "equal scores: exactly k, lower index first; or every score >= the k-th");
    v("m", m, "tokens per block; >= 1; required");
    v("eps", eps, "of the norm of the keys; >= 0");
    v("rope", rope, "rotary embedding of queries and keys; theta and dim are required");
    v("boundary", boundary,
      "lane A is cut where positions do not follow, or where the segment changes");
    v("grid", grid, "blocks are cut from token 0, or inside each document");
    v("score_scale", score_scale, "factor of the score: (A e)^-1/2, e^-1/2 or 1");
    v("mask", mask, "who sees whom");
  }
  csa_compress::Options compression() const {
    csa_compress::Options options;
    options.m = m;
    options.eps = eps;
    options.rope = rope;
    options.boundary = boundary;
    options.grid = grid;
    options.mask.padding_segment = mask.padding_segment;
    return options;
  }
};

// A layer's `indexer`: what it does not name comes from the layer.
struct NamedOptions : indexer::Choice {
  std::optional<std::int64_t> m;
  std::optional<double> eps;
  std::optional<RopeOptions> rope;
  std::optional<csa_compress::Boundary> boundary;
  std::optional<Grid> grid;
  std::optional<ScoreScale> score_scale;
  std::optional<MaskOptions> mask;

  template <class Visitor> void fields(Visitor& v) {
    v("k", k, "blocks to select; required");
    v("tie", tie, "equal scores: exactly k, lower index first; or every score >= the k-th");
    v("m", m, "tokens per block; default: the layer's");
    v("eps", eps, "of the norm of the keys; default: the layer's");
    v("rope", rope, "rotary embedding of queries and keys; default: the layer's compress_rope");
    v("boundary", boundary, "where lane A is cut; default: the layer's");
    v("grid", grid, "how blocks are cut; default: the layer's");
    v("score_scale", score_scale,
      "factor of the score: (A e)^-1/2 (default), e^-1/2 or 1; the loss takes it too");
    v("mask", mask, "who sees whom; default: the layer's");
  }
  // layer: m, eps, rope, boundary, grid and mask of the layer.
  Options over(const Options& layer) const {
    Options options = layer;
    options.k = k;
    options.tie = tie;
    options.m = m ? m : layer.m;
    options.eps = eps.value_or(layer.eps);
    options.rope = rope.value_or(layer.rope);
    options.boundary = boundary.value_or(layer.boundary);
    options.grid = grid.value_or(layer.grid);
    options.score_scale = score_scale.value_or(ScoreScale::heads_and_dim);
    options.mask = mask.value_or(layer.mask);
    return options;
  }
};

}  // namespace plumbline::csa_indexer
