// tests/machine/product.hpp
//
// C = A · Bᵀ in bf16 with a double-buffered ring of cp.async and strips of mma.sync: the ordinary
// tiled kernel, here to exercise the machine. Every synchronisation has its line and its reason.
#pragma once
#include "device/machine/machine.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

// One block makes a 32 x Columns tile of C with two warps of 16 rows, and adds its sum to `total`.
template <int Columns> struct Product {
  static constexpr int threads = 64, rows = 32, depth = 32;
  struct Args {
    View<const bf16, 2> a;  // M K
    View<const bf16, 2> b;  // N K
    View<float, 2> c;       // M N
    View<float, 1> total;   // 1: the sum of all elements of C
  };
  struct Plan {
    Tile<bf16, rows, depth, Padded<8>> a[2];
    Tile<bf16, Columns, depth, Padded<8>> b[2];
    Array<float, threads / 32> sum;
  };
  static_assert(sizeof(Plan) == 2 * 80 * (rows + Columns) + 16,
                "the plan is the same on both sides");

  DEVICE static void fetch(const Args& p, Plan& s, int step) {
    const int stage = step % 2, k = step * depth;
    const int row = block(0) * rows, column = block(1) * Columns;
    for (int i = thread(); i < (rows + Columns) * (depth / 8); i += threads) {
      const int r = i / (depth / 8), d = i % (depth / 8) * 8;
      if (r < rows) {
        const bool inside = row + r < p.a.extent(0) && k + d < p.a.extent(1);
        copy_async16(s.a[stage](r, d), p.a(inside ? row + r : 0, inside ? k + d : 0), inside);
      } else {
        const bool inside = column + r - rows < p.b.extent(0) && k + d < p.b.extent(1);
        copy_async16(s.b[stage](r - rows, d),
                     p.b(inside ? column + r - rows : 0, inside ? k + d : 0), inside);
      }
    }
    commit();
  }

  DEVICE static void run(const Args& p, Plan& s) {
    const int steps = static_cast<int>((p.a.extent(1) + depth - 1) / depth);
    float acc[Columns / 8][4] = {};
    fetch(p, s, 0);
    for (int step = 0; step < steps; ++step) {
      if (step + 1 < steps) {
        fetch(p, s, step + 1);
        wait_groups<1>();
      } else {
        wait_groups<0>();
      }
      sync_block();  // every thread's part of this step has landed
      UNROLL
      for (int k = 0; k < depth; k += 16)
        multiply(acc, load_a(s.a[step % 2], warp() * 16, k), s.b[step % 2], 0, k);
      sync_block();  // every thread has read this stage: it may be filled again
    }
    float sum = 0.f;
    UNROLL
    for (int n = 0; n < Columns / 8; ++n) UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = block(0) * rows + warp() * 16 + lane() / 4 + i / 2 * 8;
      const int c = block(1) * Columns + n * 8 + lane() % 4 * 2 + i % 2;
      sum += acc[n][i];
      if (r < p.c.extent(0) && c < p.c.extent(1)) p.c(r, c) = acc[n][i];
    }
    sum = warp_sum(sum);
    if (lane() == 0) s.sum[warp()] = sum;
    sync_block();  // both sums are there
    if (thread() == 0) reduce_add(p.total(0), s.sum[0] + s.sum[1]);
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
