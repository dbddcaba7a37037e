// device/pieces/rotation.hpp: what a launch knows of a rotary embedding. Plain, as device/plain.hpp.
#pragma once
#include <cstdint>

namespace plumbline::device {

// Pair i of a row becomes (a·cos − b·sin, a·sin + b·cos), with cosines and sines of each row by
// table, as serving frameworks keep them: factors and the sign of an inverse are in the table.
struct Rotary {
  const float* cosine = nullptr;  // rows dim/2
  const float* sine = nullptr;
  std::int64_t rows = 0;
  std::int64_t start = 0, dim = 0;  // the rotated channels are [start, start + dim)
  bool source_half = false;         // pair i is read at (i, i + dim/2), else at (2i, 2i + 1)
  bool result_half = false;         // and is written likewise
};

}  // namespace plumbline::device
