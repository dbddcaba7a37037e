// device/pieces/strips.cuh
//
// Sixteen rows of A times some groups of eight columns of B, by one warp, in either type: bf16 by the
// tensor core, f32 by fused additions. A lane owns the same sums both ways,
//     row    lane/4 + i/2·8        column    g·8 + lane%4·2 + i%2        of acc[g][i]
// Depth is a multiple of 16; a is stored [row][k].
#pragma once
#include "device/pieces/numbers.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

constexpr int strip_depth = 16;
DEVICE int lane_row(int i) { return lane() / 4 + i / 2 * 8; }
DEVICE int lane_column(int group, int i) { return group * 8 + lane() % 4 * 2 + i % 2; }

template <class T> struct Strip;
template <> struct Strip<bf16> {
  // b stored [n][k]: columns from n on
  template <int N, class A, class B>
  DEVICE static void add(float (&acc)[N][4], A& a, int row, B& b, int n, int depth) {
    for (int k = 0; k < depth; k += 16) multiply(acc, load_a(a, row, k), b, n, k);
  }
  // b stored [k][n]
  template <int N, class A, class B>
  DEVICE static void add_transposed(float (&acc)[N][4], A& a, int row, B& b, int n, int depth) {
    for (int k = 0; k < depth; k += 16) multiply_transposed(acc, load_a(a, row, k), b, n, k);
  }
};
template <> struct Strip<float> {
  template <int N> DEVICE static void add_one(float (&sum)[N][4], int g, float upper, float lower,
                                              float left, float right) {
    sum[g][0] = fused(upper, left, sum[g][0]), sum[g][1] = fused(upper, right, sum[g][1]);
    sum[g][2] = fused(lower, left, sum[g][2]), sum[g][3] = fused(lower, right, sum[g][3]);
  }
  template <int N, class A, class B>
  DEVICE static void add(float (&acc)[N][4], A& a, int row, B& b, int n, int depth) {
    for (int k = 0; k < depth; ++k) {
      const float upper = a(row + lane_row(0), k), lower = a(row + lane_row(2), k);
      UNROLL
      for (int g = 0; g < N; ++g)
        add_one(acc, g, upper, lower, b(n + lane_column(g, 0), k), b(n + lane_column(g, 1), k));
    }
  }
  template <int N, class A, class B>
  DEVICE static void add_transposed(float (&acc)[N][4], A& a, int row, B& b, int n, int depth) {
    for (int k = 0; k < depth; ++k) {
      const float upper = a(row + lane_row(0), k), lower = a(row + lane_row(2), k);
      UNROLL
      for (int g = 0; g < N; ++g)
        add_one(acc, g, upper, lower, b(k, n + lane_column(g, 0)), b(k, n + lane_column(g, 1)));
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
