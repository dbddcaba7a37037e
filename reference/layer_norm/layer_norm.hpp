// reference/layer_norm/layer_norm.hpp
//
// y = (x − mean(x))·(var(x) + eps)^(−1/2)·weight + bias over the last axis, var the biased variance
// (divided by the number of channels); docs/ops/layer_norm.md.
// Guarantees: any rank of x; var comes from the deviations, never from mean(x²) − mean(x)², so a
// large mean costs no digits; a constant row has variance exactly 0.
// Errors: eps < 0; a constant row with eps 0; shapes that disagree.
// Source: Ba, Kiros, Hinton, arXiv:1607.06450.
#pragma once
#include <span>
#include <string_view>

#include "reference/operation/run.hpp"
#include "reference/rms_norm/last_axis.hpp"
#include "reference/rms_norm/options.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::layer_norm {

struct Inputs {
  StoredTensor x, weight, bias;
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "n D", "rows, behind any leading axes");
    v.differentiable("weight", weight, "D", "factor of each channel");
    v.differentiable("bias", bias, "D", "added to each channel");
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
  Array<T> x, weight, bias;
  template <class Visitor> void fields(Visitor& v) {
    v("x", x), v("weight", weight), v("bias", bias);
  }
};

struct Op {
  using Options = NormOptions;
  using Inputs = layer_norm::Inputs;
  using Cotangents = layer_norm::Cotangents;
  template <class T> using Outputs = layer_norm::Outputs<T>;
  template <class T> using Gradients = layer_norm::Gradients<T>;
  static constexpr std::string_view name = "layer_norm";
  static constexpr std::string_view summary = "layer norm over the last axis";
  static constexpr std::string_view formula = "y = (x - mean x) (var x + eps)^-1/2 weight + bias";
  static constexpr std::span<const std::string_view> honours{};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::layer_norm
