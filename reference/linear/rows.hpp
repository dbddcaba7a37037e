// reference/linear/rows.hpp
//
// The rows of a tensor of any rank, counted over all axes but the last: row r of [B, S, H, D] is
// (b, s, h).
#pragma once
#include <cstdint>
#include <span>

#include "reference/tensor/tensor.hpp"

namespace plumbline {

inline std::int64_t row_count(const StoredTensor& tensor) {
  return count_of(Shape(tensor.shape.begin(), tensor.shape.end() - 1));
}
inline Shape lead_of(const StoredTensor& tensor, std::int64_t row) {
  Shape lead(tensor.shape.size() - 1);
  for (std::size_t axis = lead.size(); axis-- > 0;) {
    lead[axis] = row % tensor.shape[axis];
    row /= tensor.shape[axis];
  }
  return lead;
}

// Rows [first, first + count), side by side; an absent tensor (a missing cotangent) leaves zeros.
template <class T> void fetch_rows(const StoredTensor& tensor, std::int64_t first,
                                   std::int64_t count, std::span<T> rows) {
  if (!tensor.given()) {
    for (T& value : rows) value = T(0);
    return;
  }
  const auto width = static_cast<std::size_t>(tensor.shape.back());
  for (std::int64_t r = 0; r < count; ++r) {
    const Shape lead = lead_of(tensor, first + r);
    Fetch<T>::row(tensor, Index(lead), 0, rows.subspan(static_cast<std::size_t>(r) * width, width));
  }
}

}  // namespace plumbline
