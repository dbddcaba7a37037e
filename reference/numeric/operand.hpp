// reference/numeric/operand.hpp
//
// A row of inputs as a product reads it, and the three products that operations make of such rows. Inputs as they are
// stored have no error: then a bounded scalar multiplies bare values and knows the errors of the result from three
// sums, at nearly the speed of the values themselves.
#pragma once
#include <span>

#include "reference/numeric/bounded.hpp"
#include "reference/numeric/work.hpp"

namespace plumbline {

template <class V> struct BoundedOperand {
  std::span<const V> values;              // of a stored input
  std::span<const Bounded<V>> numbers{};  // of what was computed; then values is empty

  bool is_exact() const { return numbers.empty(); }
  std::size_t size() const { return is_exact() ? values.size() : numbers.size(); }
  Bounded<V> operator[](std::size_t i) const {
    return is_exact() ? Bounded<V>::exact(values[i]) : numbers[i];
  }
  BoundedOperand subspan(std::size_t first, std::size_t count) const {
    if (is_exact()) return {values.subspan(first, count)};
    return {{}, numbers.subspan(first, count)};
  }
};

template <class T> struct OperandOf { using type = std::span<const T>; };
template <class V> struct OperandOf<Bounded<V>> { using type = BoundedOperand<V>; };
template <class T> using Operand = typename OperandOf<T>::type;

template <class V> Bounded<V> dot(const BoundedOperand<V>& a, const BoundedOperand<V>& b);

// y += a·x
template <class T> void add_scaled(std::span<T> y, const T& a, std::span<const T> x) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}
template <class V>
void add_scaled(std::span<Bounded<V>> y, const Bounded<V>& a, const BoundedOperand<V>& x);

// y += d·Σ a[n]·row n of rows, which are as long as y; a row whose factor is 0 is not read. d errs once for all rows;
// the order of the additions, with each other and with what else y sums, is anybody's.
template <class T>
void add_combined(std::span<T> y, const T& d, std::span<const T> a, std::span<const T> rows) {
  Buffer<T> sum(y.size());
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (!is_zero(a[n])) add_scaled(std::span<T>(sum), a[n], rows.subspan(n * y.size(), y.size()));
  }
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += d * sum[i];
}
template <class V> void add_combined(std::span<Bounded<V>> y, const Bounded<V>& d,
                                     std::span<const Bounded<V>> a, const BoundedOperand<V>& rows);

}  // namespace plumbline
