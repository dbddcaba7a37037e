// reference/linear/contract.hpp
//
// The one contraction of the library, rows of numbers with a stored weight:
//     y[n, c] = Σ_i x[n, i] · W[i, c] + bias[c],    c = (g, o), o in a slice of the last axis,
// and its transposes, dx[n, i] = Σ_c dy[n, c] · W[i, c] and dW[i, c] = Σ_n x[n, i] · dy[n, c].
// Guarantees: each sum runs in ascending order of its index, whatever the block of rows or the
// slice; so an element of y or dW has the same bits whole and sliced, while dx of slices is a sum
// of partial sums. Weights stay stored: a row of W is converted once for a block of rows, and only
// the columns of the slice.
// Errors: a slice outside the width, a slice of quantised weights.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "reference/numeric/primitives.hpp"
#include "reference/operation/run.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

using Slice = std::array<std::int64_t, 2>;  // [begin, end) on the last axis of a weight

// The slice, checked; all columns where there is none. `where` is how an error names the slice.
Slice columns_of(const StoredTensor& weight, const std::optional<Slice>& slice,
                 const std::string& where);
void refuse_quantised(const StoredTensor& weight, const std::string& where);

// Rows that share one conversion of the weight.
inline constexpr std::int64_t rows_of_a_block = 16;
// f(first, last) over blocks of rows, on the threads of the run.
void for_each_block(const Run& run, std::int64_t rows,
                    const std::function<void(std::int64_t, std::int64_t)>& f);

template <class T> class Contraction {
 public:
  // weight [I, C] or [I, G, O], bias the same without I, or not given.
  Contraction(const StoredTensor& weight, const StoredTensor& bias, Slice columns);

  std::int64_t inputs() const { return weight_->size(0); }
  std::int64_t outputs() const { return groups_ * (columns_[1] - columns_[0]); }

  // x [rows, I], y [rows, G, end − begin]: overwritten by apply, added to by the others. Null takes
  // nothing.
  void apply(std::int64_t rows, std::span<const T> x, std::span<T> y) const;
  void pull_back_input(std::int64_t rows, std::span<const T> dy, std::span<T> dx) const;
  void pull_back_weight(std::int64_t rows, std::span<const T> x, std::span<const T> dy,
                        Array<T>* dweight) const;
  void pull_back_bias(std::int64_t rows, std::span<const T> dy, Array<T>* dbias) const;

 private:
  void fetch_row(std::int64_t i, std::span<Exact<T>> row) const;
  void multiply(std::int64_t rows, std::span<const T> x, std::span<T> y) const;  // y += x·W
  void fetch_bias(std::span<Exact<T>> row) const;

  const StoredTensor *weight_, *bias_;
  Slice columns_;
  std::int64_t groups_, width_;  // of the last axis, unsliced
};

}  // namespace plumbline
