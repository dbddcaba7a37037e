// reference/rope/rope.hpp
//
// Rotary position embedding of x [B, S, H, D], every head of a token by the token's position;
// docs/ops/rope.md.
// Guarantees: rotation and transpose of reference/rope/rotation.hpp; positions are any integers, 0
// … S−1 if absent.
// Errors: those of the options there; shapes that disagree.
#pragma once
#include <string_view>

#include "reference/operation/run.hpp"
#include "reference/rope/rotation.hpp"
#include "reference/tensor/sizes.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::rope {

struct Options {
  RopeOptions rope;
  template <class Visitor> void fields(Visitor& v) {
    v("rope", rope, "the rotation; theta and dim are required");
  }
};

struct Inputs {
  StoredTensor x, positions;
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "B S H D", "rows to rotate");
    v.integers("positions", positions, "B S", "position of each token; default 0 ... S-1");
  }
};

struct Cotangents {
  StoredTensor y;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("y", y, "B S H D", "of the rotated rows");
  }
};

template <class T> struct Outputs {
  Array<T> y;
  template <class Visitor> void fields(Visitor& v) { v("y", y, "B S H D", "the rotated rows"); }
};
template <class T> struct Gradients {
  Array<T> x;
  template <class Visitor> void fields(Visitor& v) { v("x", x); }
};

struct Op {
  using Options = rope::Options;
  using Inputs = rope::Inputs;
  using Cotangents = rope::Cotangents;
  template <class T> using Outputs = rope::Outputs<T>;
  template <class T> using Gradients = rope::Gradients<T>;
  static constexpr std::string_view name = "rope";
  static constexpr std::string_view summary = "rotary position embedding, with YaRN";
  static constexpr std::string_view formula =
      "(a, b) -> f (a cos p - b sin p, a sin p + b cos p), p = position theta^(-2i/dim) for pair i";
  static constexpr std::span<const std::string_view> honours{};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::rope
