// device/pieces/rotation.cuh: one pair of channels, rotated forth and back.
#pragma once
#include "device/pieces/numbers.cuh"
#include "device/pieces/rotation.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

struct Rotation {
  View<const float, 2> cosine, sine;  // rows, pairs
  std::int64_t start, dim;
  bool source_half, result_half;

  DEVICE std::int64_t pairs() const { return dim / 2; }
  DEVICE std::int64_t first(std::int64_t i, bool half) const { return start + (half ? i : 2 * i); }
  DEVICE std::int64_t second(std::int64_t i, bool half) const {
    return start + (half ? i + dim / 2 : 2 * i + 1);
  }
  DEVICE void turn(std::int64_t row, std::int64_t i, float& a, float& b) const {
    const float c = cosine(row, i), s = sine(row, i), x = a;
    a = x * c - b * s;
    b = x * s + b * c;
  }
  DEVICE void turn_back(std::int64_t row, std::int64_t i, float& a, float& b) const {  // transposed
    const float c = cosine(row, i), s = sine(row, i), x = a;
    a = x * c + b * s;
    b = b * c - x * s;
  }
};

inline Rotation rotation_of(const Rotary& p) {
  return {View<const float, 2>(p.cosine, {p.rows, p.dim / 2}),
          View<const float, 2>(p.sine, {p.rows, p.dim / 2}),
          p.start,
          p.dim,
          p.source_half,
          p.result_half};
}
// "" or what is wrong with it, for rows of `width` channels.
inline const char* fault_of(const Rotary& p, std::int64_t rows, std::int64_t width) {
  if (p.dim < 2 || p.dim % 2) return "a rotation of no pair, or of half a pair";
  if (p.start < 0 || p.start + p.dim > width) return "a rotation outside the channels";
  if (p.rows != rows) return "a table of cosines for other rows";
  if (!p.cosine || !p.sine) return "a rotation without cosines or sines";
  return "";
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
