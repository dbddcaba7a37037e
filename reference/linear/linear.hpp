// reference/linear/linear.hpp
//
// y[n, g, o] = Σ_i x[n, i] · weight[i, g, o] + bias[g, o], over all o or over those of slice_bounds
// [begin, end), which then takes its columns of weight and bias before the contraction;
// docs/ops/linear.md.
// Guarantees: whole-then-split and sliced agree in y and in all three gradients; y, dweight and
// dbias to the bit. Gradients have the shapes of the whole weight and bias, 0 outside the slice.
// Errors: slice_bounds outside 0 ≤ begin < end ≤ O, or with F8 weights; shapes that disagree.
// Source: MaxText #4630 (DenseGeneral with slice_bounds).
#pragma once
#include <string_view>

#include "reference/linear/contract.hpp"
#include "reference/operation/run.hpp"
#include "reference/tensor/sizes.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::linear {

struct Options {
  std::optional<Slice> slice_bounds;
  template <class Visitor> void fields(Visitor& v) {
    v("slice_bounds", slice_bounds, "columns of the last weight axis to contract; default all");
  }
};

struct Inputs {
  StoredTensor x, weight, bias;
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "n I", "rows");
    v.required_differentiable("weight", weight, "I G O", "the weight");
    v.differentiable("bias", bias, "G O", "added to every row");
  }
};

struct Cotangents {
  StoredTensor y;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("y", y, "n G O", "of the product; with slice_bounds O is the width of the slice");
  }
};

template <class T> struct Outputs {
  Array<T> y;
  template <class Visitor> void fields(Visitor& v) {
    v("y", y, "n G O", "the product; with slice_bounds O is the width of the slice");
  }
};
template <class T> struct Gradients {
  Array<T> x, weight, bias;
  template <class Visitor> void fields(Visitor& v) {
    v("x", x), v("weight", weight), v("bias", bias);
  }
};

struct Op {
  using Options = linear::Options;
  using Inputs = linear::Inputs;
  using Cotangents = linear::Cotangents;
  template <class T> using Outputs = linear::Outputs<T>;
  template <class T> using Gradients = linear::Gradients<T>;
  static constexpr std::string_view name = "linear";
  static constexpr std::string_view summary = "a projection, whole or a slice of its columns";
  static constexpr std::string_view formula = "y[n,g,o] = sum_i x[n,i] weight[i,g,o] + bias[g,o]";
  static constexpr std::span<const std::string_view> honours{};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::linear
