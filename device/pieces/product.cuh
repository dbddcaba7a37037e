// device/pieces/product.cuh
//
// C = A·B in tiles of 64 x 64, four warps with 16 rows each. Where numbers come from and where sums
// go is said by the caller, so one text serves all products of a projection, forward and backward:
// slices are read in place, and a bias, a rotation or a scale is applied to sums in registers.
//
// bf16 goes through the tensor core (strips of m16n8k16); f32, which that cannot hold, through
// ordinary fused additions. Either way a lane owns the same sums: of group g and i = 0 … 3
//     row    warp·16 + lane/4 + i/2·8        column    g·8 + lane%4·2 + i%2
// so sums i and i + 1, i even, are neighbours in a row: what a rotation needs as a pair.
//
// Per tile and 32 numbers of depth a block reads 2·64·32 numbers and computes 64·64·32·2 FLOP:
// 32 FLOP for each byte of bf16. The ridge of an H200 is near 180: bound by L2, not by arithmetic;
// a fast kernel has larger tiles and loads while it computes.
#pragma once
#include "device/pieces/strips.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

constexpr int tile_rows = 64, tile_columns = 64, tile_depth = 32, tile_threads = 128;

// 16 bytes of padding: the eight rows of an ldmatrix fall into different banks.
template <class T> struct ProductPlan {
  Tile<T, tile_rows, tile_depth, Padded<16 / sizeof(T)>> a;     // [row][k]
  Tile<T, tile_depth, tile_columns, Padded<16 / sizeof(T)>> b;  // [k][column]
};
static_assert(sizeof(ProductPlan<bf16>) == 2 * (64 * 40 + 32 * 72), "the same on both sides");
static_assert(sizeof(ProductPlan<float>) == 4 * (64 * 36 + 32 * 68), "the same on both sides");

using Sums = float[tile_columns / 8][4];
DEVICE int sum_row(int i) { return warp() * 16 + lane_row(i); }
DEVICE int sum_column(int group, int i) { return lane_column(group, i); }

// acc += A·B of a tile: a(r, k) and b(k, c) are numbers at row r and column c of the tile, or zero
// outside the matrices; k < depth is seen to here. AlongDepth, AlongColumns: neighbours in memory are
// neighbours in k (of a) and in c (of b); neighbouring threads then read neighbouring numbers.
// Every thread of the block calls it.
template <bool AlongDepth, bool AlongColumns, class T, class A, class B>
DEVICE void add_product(ProductPlan<T>& s, Sums& acc, std::int64_t depth, A a, B b) {
  for (std::int64_t first = 0; first < depth; first += tile_depth) {
    for (int i = thread(); i < tile_rows * tile_depth; i += tile_threads) {
      const int r = AlongDepth ? i / tile_depth : i % tile_rows;
      const int k = AlongDepth ? i % tile_depth : i / tile_rows;
      s.a(r, k) = first + k < depth ? a(r, first + k) : Zero<T>::value();
    }
    for (int i = thread(); i < tile_depth * tile_columns; i += tile_threads) {
      const int k = AlongColumns ? i / tile_columns : i % tile_depth;
      const int c = AlongColumns ? i % tile_columns : i / tile_depth;
      s.b(k, c) = first + k < depth ? b(first + k, c) : Zero<T>::value();
    }
    sync_block();  // the tile is complete
    Strip<T>::add_transposed(acc, s.a, warp() * 16, s.b, 0, tile_depth);
    sync_block();  // everybody has read it: it may be filled again
  }
}

// A whole product by its Terms, a struct with
//     Args, Element (bf16 or float), along_depth, along_columns,
//     rows(p), columns(p), depth(p), a(p, i, k), b(p, k, j)    called inside the matrices only
//     store(p, i, j, first, second)    sums (i, j) and (i, j + 1); j is even, j + 1 may be outside
// One block for each tile, along grid x for rows and y for columns.
template <class Terms> struct Product {
  static constexpr int threads = tile_threads;
  using Args = typename Terms::Args;
  using T = typename Terms::Element;
  using Plan = ProductPlan<T>;

  DEVICE static void run(const Args& p, Plan& s) {
    const std::int64_t row = std::int64_t(block(0)) * tile_rows,
                       column = std::int64_t(block(1)) * tile_columns;
    Sums acc = {};
    add_product<Terms::along_depth, Terms::along_columns>(
        s, acc, Terms::depth(p),
        [&](int r, std::int64_t k) -> T {
          return row + r < Terms::rows(p) ? Terms::a(p, row + r, k) : Zero<T>::value();
        },
        [&](std::int64_t k, int c) -> T {
          return column + c < Terms::columns(p) ? Terms::b(p, k, column + c) : Zero<T>::value();
        });
    UNROLL
    for (int g = 0; g < tile_columns / 8; ++g) UNROLL
    for (int i = 0; i < 4; i += 2) {
      const std::int64_t r = row + sum_row(i), c = column + sum_column(g, 0);
      if (r < Terms::rows(p) && c < Terms::columns(p))
        Terms::store(p, r, c, acc[g][i], acc[g][i + 1]);
    }
  }
};

constexpr std::int64_t tiles(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}
template <class Terms, class Stream> void launch_product(Stream& stream,
                                                         const typename Terms::Args& args,
                                                         std::int64_t rows, std::int64_t columns) {
  launch<Product<Terms>>(stream, {tiles(rows, tile_rows), tiles(columns, tile_columns)}, args);
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
