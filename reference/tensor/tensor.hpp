// reference/tensor/tensor.hpp
//
// Inputs are never converted as a whole: fetch<T> converts one row exactly, and checks it. Array<T> is an output or
// an intermediate. Errors: a NaN or infinity where the operation reads is an Error naming the tensor and the
// element, unless the case says nonfinite allow.
#pragma once
#include "reference/numeric/scalar.hpp"
#include "reference/tensor/stored_tensor.hpp"

namespace plumbline {

// An output, or an intermediate between operations.
template <class T> struct Array {
  std::vector<T> values;
  Shape shape;

  Array() = default;
  explicit Array(Shape s, T fill = T(0))
      : values(static_cast<std::size_t>(count_of(s)), fill), shape(std::move(s)), made_(true) {}
  bool given() const { return made_; }
  std::size_t offset(Place index) const {
    std::size_t at = 0, axis = 0;
    for (const std::int64_t i : index) {
      at = at * static_cast<std::size_t>(shape[axis++]) + static_cast<std::size_t>(i);
    }
    for (; axis < shape.size(); ++axis) at *= static_cast<std::size_t>(shape[axis]);
    return at;
  }
  T& operator()(Place index) { return values[offset(index)]; }
  const T& operator()(Place index) const { return values[offset(index)]; }
  // The last axes behind a leading index.
  std::span<T> row(Place lead, std::int64_t width) {
    return std::span<T>(values).subspan(offset(lead), static_cast<std::size_t>(width));
  }
  std::span<const T> row(Place lead, std::int64_t width) const {
    return std::span<const T>(values).subspan(offset(lead), static_cast<std::size_t>(width));
  }

 private:
  bool made_ = false;
};

template <class T> struct Fetch {
  static T element(const StoredTensor& tensor,
                   Index index);  // without the check for NaN and infinities
  static T one(const StoredTensor& tensor, Index index);
  static void row(const StoredTensor& tensor, Index lead, std::int64_t first, std::span<T> row);
};

// The row behind a leading index (all axes but the last), converted exactly and checked.
template <class T> void fetch(const StoredTensor& tensor, Place lead, std::span<T> row) {
  Fetch<T>::row(tensor, Index(lead.begin(), lead.size()), 0, row);
}
// Elements [first, first + row.size()) of that row.
template <class T>
void fetch(const StoredTensor& tensor, Place lead, std::int64_t first, std::span<T> row) {
  Fetch<T>::row(tensor, Index(lead.begin(), lead.size()), first, row);
}
template <class T> T fetch_one(const StoredTensor& tensor, Place index) {
  return Fetch<T>::one(tensor, Index(index.begin(), index.size()));
}
template <class T> T element(const StoredTensor& tensor, Place index) {
  return Fetch<T>::element(tensor, Index(index.begin(), index.size()));
}
// A view of an intermediate; the array must outlive it.
template <class T> StoredTensor view(const Array<T>& array, std::string name) {
  StoredTensor tensor;
  tensor.name = std::move(name);
  tensor.data = reinterpret_cast<const std::byte*>(array.values.data());
  if constexpr (std::is_same_v<T, std::int32_t>) {
    tensor.dtype = Dtype::i32;
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    tensor.dtype = Dtype::boolean;
  } else {
    tensor.dtype = Dtype::working;
    tensor.precision = precision_of<T>();
    tensor.element_bytes = sizeof(T);
  }
  tensor.shape = array.shape;
  tensor.stride = row_major(array.shape);
  tensor.nonfinite = NonFinite::allow;  // what the library computed was checked where it came in
  tensor.present = true;
  return tensor;
}

}  // namespace plumbline
