// reference/rope/rotation.hpp
//
// Rotary position embedding of one row of channels: pair i, (a, b), becomes
//     attention_factor · (a cos φ − b sin φ, a sin φ + b cos φ),   φ = ±position · frequency(i),
// and its transpose, for gradients. Every operation that rotates does it through this class.
// Guarantees: channels outside the rotated ones stay as they are. Angles are products of an exact
// integer and a frequency, reduced without loss; at f64 in f192, so that a sine at position 10^6 is
// as good as one at 1. f32 computes them in f32, as kernels do, and shows what that costs.
// Source: Su et al., RoFormer, arXiv:2104.09864; frequencies with yarn: Peng et al.,
// arXiv:2309.00071.
// Errors: theta or dim missing, theta ≤ 0, dim not even, not positive or beyond the width; in yarn
// a field missing, or one that is not positive, or theta = 1, whose logarithm the ramp is divided
// by.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/numeric/primitives.hpp"
#include "reference/numeric/work.hpp"
#include "reference/rope/options.hpp"

namespace plumbline {

// The scalar that angles are computed in.
template <class S> struct AngleOf { using type = S; };
template <> struct AngleOf<f64> { using type = f192; };
template <> struct AngleOf<Bounded<f64>> { using type = Bounded<f192>; };

template <class T> class Rotation {
  using Angle = typename AngleOf<T>::type;

 public:
  struct Turn {  // of one position; every head of a token shares it
    Buffer<T> cosine, sine;
  };

  // width: channels of a row. where: how errors name the options.
  Rotation(const RopeOptions& options, std::int64_t width,
           const std::string& where = "option rope");

  Turn at(std::int64_t position) const;
  void apply(const Turn& turn, std::span<T> row) const;
  void pull_back(const Turn& turn, std::span<T> row) const;  // the transpose

 private:
  struct Pair {
    std::size_t first, second;
  };

  std::size_t dim_, start_;  // the rotated channels are [start, start + dim)
  bool inverse_;
  Angle factor_;
  std::vector<Angle> frequency_;
  std::vector<Pair> source_, result_;  // where a pair is read and written, from start
};

}  // namespace plumbline
