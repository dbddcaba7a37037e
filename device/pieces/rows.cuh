// device/pieces/rows.cuh: kernels in which each warp takes a row.
#pragma once
#include "device/pieces/numbers.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

constexpr int row_threads = 128, rows_of_a_block = row_threads / 32;

DEVICE std::int64_t my_row() { return std::int64_t(block(0)) * rows_of_a_block + warp(); }
constexpr std::int64_t row_blocks(std::int64_t rows) {
  return (rows + rows_of_a_block - 1) / rows_of_a_block;
}

// (mean(x²) + eps)^(−1/2) of a row that a whole warp reads.
template <class X> DEVICE float rms_factor(const View<const X, 2>& x, std::int64_t row, float eps) {
  float squares = 0.f;
  for (std::int64_t i = lane(); i < x.extent(1); i += 32) {
    const float value = number(X(x(row, i)));
    squares = fused(value, value, squares);
  }
  return fast_rsqrt(warp_sum(squares) / float(x.extent(1)) + eps);
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
