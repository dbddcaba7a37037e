// reference/rms_norm/last_axis.hpp
//
// Shapes of an operation over the last axis of a tensor of any rank: x [..., D] with weight and
// bias [D]. Sizes cannot say "any rank", so the checks stand here. Errors name the tensor and both
// shapes.
#pragma once
#include <cstdint>
#include <string>

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"

namespace plumbline {

struct LastAxis {
  std::int64_t rows, width;

  explicit LastAxis(const StoredTensor& x) : rows(0), width(0) {
    if (x.shape.empty())
      throw Error(x.name, "a scalar", "a tensor of rank >= 1: the last axis is normalised");
    width = x.shape.back();
    if (width < 1)
      throw Error(x.name, "shape " + to_string(x.shape), "a last axis of at least one element");
    rows = row_count(x);
  }
  void check_vector(const StoredTensor& vector, const StoredTensor& x) const {
    if (!vector.given() || vector.shape == Shape{width}) return;
    throw Error(vector.name, "shape " + to_string(vector.shape),
                "[" + std::to_string(width) + "], the last axis of " + x.name);
  }
  void check_same(const StoredTensor& y, const StoredTensor& x) const {
    if (!y.given() || y.shape == x.shape) return;
    throw Error(y.name, "shape " + to_string(y.shape), to_string(x.shape) + " as " + x.name);
  }
};

}  // namespace plumbline
