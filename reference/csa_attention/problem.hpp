// reference/csa_attention/problem.hpp
//
// What forward and backward share before the first row: who sees what, and where keys lie. A layer makes one of its
// own arrays as views; arrays and options outlive the problem. Without option m there are no blocks, and compressed
// may be absent: a layer's window alone.
#pragma once
#include "reference/attention/selection.hpp"
#include "reference/csa_attention/csa_attention.hpp"

namespace plumbline::csa_attention {

// What the operation asks for beyond what a Problem needs.
void check(const Options& options);

template <class T> struct Problem {
  Problem(const Inputs& in, const Options& options);
  Problem(const Problem&) = delete;  // the setting points into it
  Problem& operator=(const Problem&) = delete;

  Outputs<T> forward(const Run& run) const;
  Gradients<T> backward(const Run& run, const Cotangents& cotangents);

  Sizes sizes;
  Visibility visibility;
  attention::Selection selection;
  std::int64_t window;
  bool blocks;
  attention::Setting<T> setting;  // sources and gradients: 0 kv, 1 compressed
};

}  // namespace plumbline::csa_attention
