// reference/tensor/operands.hpp
//
// Rows of an input, converted for products. A bounded scalar keeps bare values of what is stored, and numbers with
// their errors of what another operation computed.
#pragma once
#include "reference/numeric/operand.hpp"
#include "reference/numeric/work.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

template <class T> class Operands {
 public:
  void resize(std::size_t n) { numbers_.resize(n); }
  bool empty() const { return numbers_.empty(); }
  // The row behind a leading index, to [at, at + width).
  void fetch(const StoredTensor& tensor, Place lead, std::size_t at, std::size_t width) {
    plumbline::fetch<T>(tensor, lead, std::span<T>(numbers_).subspan(at, width));
  }
  Operand<T> row(std::size_t at, std::size_t width) const {
    return std::span<const T>(numbers_).subspan(at, width);
  }

 private:
  Buffer<T> numbers_;
};

template <class V> class Operands<Bounded<V>> {
 public:
  void resize(std::size_t n) { size_ = n; }
  bool empty() const { return size_ == 0; }
  void fetch(const StoredTensor& tensor, Place lead, std::size_t at, std::size_t width) {
    if (tensor.dtype == Dtype::working) {
      numbers_.resize(size_);
      plumbline::fetch<Bounded<V>>(tensor, lead,
                                   std::span<Bounded<V>>(numbers_).subspan(at, width));
    } else {
      values_.resize(size_);
      plumbline::fetch<V>(tensor, lead, std::span<V>(values_).subspan(at, width));
    }
  }
  Operand<Bounded<V>> row(std::size_t at, std::size_t width) const {
    if (numbers_.empty()) return {std::span<const V>(values_).subspan(at, width)};
    return {{}, std::span<const Bounded<V>>(numbers_).subspan(at, width)};
  }

 private:
  std::size_t size_ = 0;
  Buffer<V> values_;
  Buffer<Bounded<V>> numbers_;
};

}  // namespace plumbline
