// reference/tensor/stored_tensor.hpp
//
// Tensors as they lie in a file or in somebody's memory: any strides, any dtype of tensor/dtype.hpp, an optional
// remainder (value = x + x.lo) and, for fp8 codes, an optional scale tensor (value = code·scale, exactly).
// This header needs no multiprecision library.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/numeric/precision.hpp"
#include "reference/tensor/dtype.hpp"

namespace plumbline {

using Shape = std::vector<std::int64_t>;
using Index = std::span<const std::int64_t>;

std::int64_t count_of(const Shape& shape);  // 1 for a scalar; Error when the product overflows
Shape row_major(const Shape& shape);        // strides in elements
std::string to_string(const Shape& shape);  // "[2, 3]"
std::string to_string(Index index);

enum class NonFinite { error, allow };
inline std::span<const std::string_view> names_of(NonFinite) {
  static constexpr std::string_view names[] = {"error", "allow"};
  return names;
}

// How the row behind the first two axes of a tensor (batch and token) is read.
enum class RowNote : std::uint8_t {
  as_stored,
  unread,  // by nobody who counts: a NaN in it is nobody's error
  blank,   // as zeros, whatever is stored
};
using RowNotes = std::vector<RowNote>;  // [B, S]

struct StoredTensor {
  std::string name;  // as errors name it: "in.query"
  const std::byte* data = nullptr;
  Dtype dtype = Dtype::f64;
  Precision precision = Precision::f64;  // of a working tensor
  std::size_t element_bytes = 0;         // likewise
  Shape shape, stride;                   // stride in elements
  std::shared_ptr<const StoredTensor> low, scale;
  std::shared_ptr<const void> owner;      // keeps a mapping or an array alive
  std::shared_ptr<const RowNotes> notes;  // none: every row as stored
  NonFinite nonfinite = NonFinite::error;
  bool present = false;  // an empty tensor has no data and is given all the same

  bool given() const { return present; }
  std::int64_t size(std::size_t axis) const { return shape[axis]; }
  RowNote note(Index index) const {
    if (!notes || index.size() < 2) return RowNote::as_stored;
    return (*notes)[static_cast<std::size_t>(index[0] * shape[1] + index[1])];
  }
};

// The part of a tensor at index i of its first axis; remainder and scale follow.
StoredTensor at_first(const StoredTensor& tensor, std::int64_t i);
// [S, …] to its rows [first, first + count) as one sequence, [1, count, …]; remainder and scale follow.
StoredTensor at_rows(const StoredTensor& tensor, std::int64_t first, std::int64_t count);
// The same tensor with an axis of size 1 put in front of `axis`; remainder and scale follow.
StoredTensor with_axis(const StoredTensor& tensor, std::size_t axis);

using Place = std::initializer_list<std::int64_t>;
std::int64_t integer_at(const StoredTensor& tensor, Index index);
bool boolean_at(const StoredTensor& tensor, Index index);
inline std::int64_t integer_at(const StoredTensor& tensor, Place index) {
  return integer_at(tensor, Index(index.begin(), index.size()));
}
inline bool boolean_at(const StoredTensor& tensor, Place index) {
  return boolean_at(tensor, Index(index.begin(), index.size()));
}

}  // namespace plumbline
