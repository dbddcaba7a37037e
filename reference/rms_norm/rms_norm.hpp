// reference/rms_norm/rms_norm.hpp
//
// y = x·(mean(x²) + eps)^(−1/2)·weight over the last axis; docs/ops/rms_norm.md.
// Guarantees: any rank of x; without a weight it is one of ones, and has no gradient.
// Errors: eps < 0; a zero row with eps 0; shapes that disagree.
// Source: Zhang, Sennrich, arXiv:1910.07467.
#pragma once
#include <span>
#include <string_view>

#include "reference/operation/run.hpp"
#include "reference/rms_norm/last_axis.hpp"
#include "reference/rms_norm/options.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::rms_norm {

struct Inputs {
  StoredTensor x, weight;
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "n D", "rows, behind any leading axes");
    v.differentiable("weight", weight, "D", "factor of each channel");
  }
};

struct Cotangents {
  StoredTensor y;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("y", y, "n D", "of the normalised rows");
  }
};

template <class T> struct Outputs {
  Array<T> y;
  template <class Visitor> void fields(Visitor& v) {
    v("y", y, "n D", "the normalised rows, in the shape of x");
  }
};
template <class T> struct Gradients {
  Array<T> x, weight;
  template <class Visitor> void fields(Visitor& v) { v("x", x), v("weight", weight); }
};

struct Op {
  using Options = NormOptions;
  using Inputs = rms_norm::Inputs;
  using Cotangents = rms_norm::Cotangents;
  template <class T> using Outputs = rms_norm::Outputs<T>;
  template <class T> using Gradients = rms_norm::Gradients<T>;
  static constexpr std::string_view name = "rms_norm";
  static constexpr std::string_view summary = "root-mean-square norm over the last axis";
  static constexpr std::string_view formula = "y = x (mean x^2 + eps)^-1/2 weight";
  static constexpr std::span<const std::string_view> honours{};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::rms_norm
