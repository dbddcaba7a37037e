// reference/mla_projection/head_parts.hpp
//
// A weight [R, H, a + b] whose product holds two parts for each head: nope | pe of queries, k_nope
// | value. Whole: one contraction, then the product is split. Sliced: the columns of each part are
// contracted on their own, the weight is read twice, half of it each time, and no product [rows, H,
// a + b] is held.
// Guarantees: parts, weight and bias gradients have the same bits either way; the gradient of the
// input is a sum of two partial sums when sliced.
#pragma once
#include <optional>

#include "reference/linear/contract.hpp"

namespace plumbline {

template <class T> class HeadParts {
 public:
  // first: a. Error, under `schedule.sliced`, if quantised weights would be sliced.
  HeadParts(const StoredTensor& weight, const StoredTensor& bias, std::int64_t first, bool sliced);

  // x [rows, R] to a [rows, H, a] and b [rows, H, b].
  void apply(std::int64_t rows, std::span<const T> x, std::span<T> a, std::span<T> b) const;
  // Adds to dx, dweight and dbias; the latter two may be null.
  void pull_back(std::int64_t rows, std::span<const T> x, std::span<const T> da,
                 std::span<const T> db, std::span<T> dx, Array<T>* dweight, Array<T>* dbias) const;

 private:
  void pull_back(const Contraction<T>& product, std::int64_t rows, std::span<const T> x,
                 std::span<const T> dy, std::span<T> dx, Array<T>* dweight, Array<T>* dbias) const;

  std::size_t first_, second_;
  std::optional<Contraction<T>> whole_, part_a_, part_b_;
};

}  // namespace plumbline
