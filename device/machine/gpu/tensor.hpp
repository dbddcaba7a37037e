// device/machine/gpu/tensor.hpp: the tensor core of a warp, m16n8k16 in bf16 with f32 accumulators.
//
// Of a 16 x 8 accumulator, lane l holds (l / 4 + i / 2 * 8, l % 4 * 2 + i % 2) in acc[i].
#pragma once
#include "device/machine/gpu/operations.hpp"

namespace plumbline::device::gpu {

struct FragmentA {
  std::uint32_t x[4];
};
struct FragmentB {
  std::uint32_t x[2];
};

// Four 8 x 8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
template <class T> DEVICE void ldmatrix4(std::uint32_t (&x)[4], const T& row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(row))
               : "memory");
}
template <class T> DEVICE void ldmatrix4_transposed(std::uint32_t (&x)[4], const T& row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(shared_address(row))
               : "memory");
}
// Rows row..row+15 and columns column..column+15 of a bf16 tile.
template <class Tile> DEVICE FragmentA load_a(Tile& tile, int row, int column) {
  FragmentA a;
  ldmatrix4(a.x, tile(row + lane() % 16, column + lane() / 16 * 8));
  return a;
}
DEVICE void mma(float (&d)[4], const FragmentA& a, const FragmentB& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
}

// acc (16 x 8N) += a (16 x 16) · b: columns n..n+8N-1, depth k..k+15 of a tile stored [n][k] ...
template <int N, class Tile>
DEVICE void multiply(float (&acc)[N][4], const FragmentA& a, Tile& b, int n, int k) {
  static_assert(N % 2 == 0, "one ldmatrix serves two groups of eight columns");
  UNROLL
  for (int i = 0; i < N; i += 2) {
    std::uint32_t x[4];
    ldmatrix4(x, b(n + i * 8 + lane() / 16 * 8 + lane() % 8, k + lane() / 8 % 2 * 8));
    mma(acc[i], a, {{x[0], x[1]}});
    mma(acc[i + 1], a, {{x[2], x[3]}});
  }
}
// ... or stored [k][n].
template <int N, class Tile>
DEVICE void multiply_transposed(float (&acc)[N][4], const FragmentA& a, Tile& b, int n, int k) {
  static_assert(N % 2 == 0, "one ldmatrix serves two groups of eight columns");
  UNROLL
  for (int i = 0; i < N; i += 2) {
    std::uint32_t x[4];
    ldmatrix4_transposed(x, b(k + lane() % 16, n + i * 8 + lane() / 16 * 8));
    mma(acc[i], a, {{x[0], x[1]}});
    mma(acc[i + 1], a, {{x[2], x[3]}});
  }
}

}  // namespace plumbline::device::gpu
