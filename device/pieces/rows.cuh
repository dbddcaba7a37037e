// device/pieces/rows.cuh: kernels in which each warp takes a row.
#pragma once
#include "device/pieces/numbers.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

constexpr int row_threads = 128, rows_of_a_block = row_threads / 32;

DEVICE std::int64_t my_row() { return std::int64_t(block(0)) * rows_of_a_block + warp(); }
constexpr std::int64_t row_blocks(std::int64_t rows) {
  return (rows + rows_of_a_block - 1) / rows_of_a_block;
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
