// device/pieces/column_sums.cuh
//
// Σ over rows of a term of each column, always in the same order: each block sums a part of the rows
// for 128 columns, and a second kernel adds the parts up. No atomics, no shared memory. One read of
// each term: bound by memory.
#pragma once
#include "device/machine/machine.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

constexpr std::int64_t part_rows = 128, most_parts = 256;
// Parts that `rows` are cut into, and the rows of each.
BOTH constexpr std::int64_t parts_of(std::int64_t rows) {
  const std::int64_t parts = (rows + part_rows - 1) / part_rows;
  return parts < 1 ? 1 : parts > most_parts ? most_parts : parts;
}
BOTH constexpr std::int64_t rows_of_a_part(std::int64_t rows) {
  return (rows + parts_of(rows) - 1) / parts_of(rows);
}

// Terms: Args with a member `parts` (View<float, 2>, parts x columns), rows(p), term(p, row, column).
template <class Terms> struct SumParts {
  static constexpr int threads = 128;
  using Args = typename Terms::Args;
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t column = std::int64_t(block(0)) * threads + thread();
    if (column >= p.parts.extent(1)) return;
    const std::int64_t rows = Terms::rows(p), size = rows_of_a_part(rows);
    const std::int64_t first = block(1) * size, last = first + size < rows ? first + size : rows;
    float sum = 0.f;
    for (std::int64_t row = first; row < last; ++row) sum += Terms::term(p, row, column);
    p.parts(block(1), column) = sum;
  }
};

struct FoldParts {
  static constexpr int threads = 128;
  struct Args {
    View<const float, 2> parts;  // parts, columns
    View<float, 1> sum;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t column = std::int64_t(block(0)) * threads + thread();
    if (column >= p.sum.extent(0)) return;
    float sum = 0.f;
    for (std::int64_t part = 0; part < p.parts.extent(0); ++part) sum += p.parts(part, column);
    p.sum(column) = sum;
  }
};

// floats of workspace
constexpr std::int64_t column_sum_floats(std::int64_t rows, std::int64_t columns) {
  return parts_of(rows) * columns;
}
template <class Terms, class Stream> void sum_columns(Stream& stream, typename Terms::Args args,
                                                      std::int64_t rows, std::int64_t columns,
                                                      float* workspace, float* sum) {
  const std::int64_t parts = parts_of(rows), blocks = (columns + 127) / 128;
  args.parts = View<float, 2>(workspace, {parts, columns});
  launch<SumParts<Terms>>(stream, {blocks, parts}, args);
  launch<FoldParts>(
      stream, {blocks},
      {View<const float, 2>(workspace, {parts, columns}), View<float, 1>(sum, {columns})});
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
