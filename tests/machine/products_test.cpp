// Tensor cores: fragments, strips and warpgroup products agree with the textbook, in each
// arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/machine/host/products.hpp"
#include "device/machine/machine.hpp"

namespace plumbline::device::host {
namespace {

float value(int row, int column, int salt) {
  return static_cast<float>((row * 31 + column * 17 + salt) % 9 - 4);
}

// ---- a warp -------------------------------------------------------------------------------------

struct WarpPlan {
  Tile<bf16, 16, 16, Padded<8>> a;
  Tile<bf16, 32, 16, Padded<8>> b;    // [n][k]
  Tile<bf16, 16, 32, Padded<8>> b_t;  // [k][n]
};
struct WarpProducts {
  static constexpr int threads = 32;
  struct Args {};
  using Plan = WarpPlan;

  static void check(const float (&acc)[4][4], float start) {
    for (int n = 0; n < 4; ++n)
      for (int i = 0; i < 4; ++i) {
        const int row = lane() / 4 + i / 2 * 8, column = n * 8 + lane() % 4 * 2 + i % 2;
        float exact = start;
        for (int k = 0; k < 16; ++k) exact += value(row, k, 1) * value(column, k, 2);
        EXPECT_EQ(acc[n][i], exact);
      }
  }
  static void run(const Args&, Plan& s) {
    for (int i = thread(); i < 32 * 16; i += threads) {
      const int n = i / 16, k = i % 16;
      if (n < 16) s.a(n, k) = to_bf16(value(n, k, 1));
      s.b(n, k) = to_bf16(value(n, k, 2));
      s.b_t(k, n) = to_bf16(value(n, k, 2));
    }
    sync_warp();
    const FragmentA a = load_a(s.a, 0, 0);
    float strip[4][4] = {}, strip_t[4][4] = {}, pieces[4][4] = {}, pieces_t[4][4] = {};
    for (auto& group : strip)
      for (float& x : group) x = 3.f;
    multiply(strip, a, s.b, 0, 0);
    multiply_transposed(strip_t, a, s.b_t, 0, 0);
    for (int n = 0; n < 4; n += 2) {  // the strips, by hand
      std::uint32_t x[4];
      ldmatrix4(x, s.b(n * 8 + lane() / 16 * 8 + lane() % 8, lane() / 8 % 2 * 8));
      mma(pieces[n], a, {{x[0], x[1]}});
      mma(pieces[n + 1], a, {{x[2], x[3]}});
      ldmatrix4_transposed(x, s.b_t(lane() % 16, n * 8 + lane() / 16 * 8));
      mma(pieces_t[n], a, {{x[0], x[1]}});
      mma(pieces_t[n + 1], a, {{x[2], x[3]}});
    }
    check(strip, 3.f), check(strip_t, 0.f), check(pieces, 0.f), check(pieces_t, 0.f);
  }
};

TEST(Products, OfAWarp) {
  for (const Products model : {Products::sequential, Products::once, Products::truncated}) {
    Stream stream({.products = model});
    launch<WarpProducts>(stream, {}, {});
    EXPECT_EQ(stream.error(), "");
  }
}

// ---- a warpgroup --------------------------------------------------------------------------------

template <int N> struct GroupProducts {
  static constexpr int threads = 128, depth = 64;
  struct Args {};
  struct Plan {
    Tile<bf16, 64, depth, Swizzle128> a;
    Tile<bf16, N, depth, Swizzle128> b;    // [n][k]
    Tile<bf16, depth, N, Swizzle128> b_t;  // [k][n]
  };
  // Rows are this thread's; k counts the terms that went in.
  static void check(Accumulator<N>& d, int terms) {
    for (int i = 0; i < N / 2; ++i) {
      const int row = warp() * 16 + lane() / 4 + i / 2 % 2 * 8;
      const int column = i / 4 * 8 + lane() % 4 * 2 + i % 2;
      float exact = 0;
      for (int k = 0; k < terms; ++k) exact += value(row, k, 1) * value(column, k, 2);
      EXPECT_EQ(d[i], exact);
    }
  }
  static void run(const Args&, Plan& s) {
    for (int i = thread(); i < N * depth; i += threads) {
      const int n = i / depth, k = i % depth;
      if (n < 64) s.a(n, k) = to_bf16(value(n, k, 1));
      s.b(n, k) = to_bf16(value(n, k, 2));
      s.b_t(k, n) = to_bf16(value(n, k, 2));
    }
    fence_async();
    sync_block();
    for (const bool transposed : {false, true})
      for (const bool in_registers : {false, true}) {
        Accumulator<N> d;
        FragmentA a[depth / 16];
        for (int k = 0; k < depth; k += 16) a[k / 16] = load_a(s.a, warp() * 16, k);
        wgmma_fence(d, a);
        for (int k = 0; k < depth; k += 16) {
          const FragmentA& piece = a[k / 16];
          const Descriptor left = operand(s.a, 0, k);
          const Descriptor right = transposed ? operand_transposed(s.b_t, k) : operand(s.b, 0, k);
          if (in_registers && transposed) wgmma_transposed(d, piece, right, k > 0);
          if (in_registers && !transposed) wgmma(d, piece, right, k > 0);
          if (!in_registers && transposed) wgmma_transposed(d, left, right, k > 0);
          if (!in_registers && !transposed) wgmma(d, left, right, k > 0);
        }
        wgmma_commit();
        wgmma_wait<0>(d);
        check(d, depth);
      }
  }
};

template <int N> void group_products() {
  for (const bool late : {false, true})
    for (const Products model : {Products::sequential, Products::truncated}) {
      Stream stream({.late = late, .products = model});
      launch<GroupProducts<N>>(stream, {}, {});
      EXPECT_EQ(stream.error(), "");
    }
}
TEST(Products, OfAWarpgroup64) { group_products<64>(); }
TEST(Products, OfAWarpgroup128) { group_products<128>(); }
TEST(Products, OfAWarpgroup256) { group_products<256>(); }

// ---- arithmetic ---------------------------------------------------------------------------------

struct Sum {
  float sequential = 0, once = 0, truncated = 0;
};
float add(Products model, float start, const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> sum(8, start), wide(16 * 8);  // eight columns, all alike
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = b[i / 8];
  accumulate(model, sum.data(), a.data(), wide.data(), 1, 8);
  return sum[5];
}
Sum add(float start, const std::vector<float>& a, const std::vector<float>& b) {
  return {add(Products::sequential, start, a, b), add(Products::once, start, a, b),
          add(Products::truncated, start, a, b)};
}

TEST(Arithmetic, DiffersWhereModelsDiffer) {
  // 2^24 + 1 + 1: each 1 is lost alone, both together are not.
  std::vector<float> ones(16, 0.f), b(16, 1.f);
  ones[0] = ones[1] = 1.f;
  const Sum far = add(16777216.f, ones, b);
  EXPECT_EQ(far.sequential, 16777216.f);
  EXPECT_EQ(far.once, 16777218.f);
  EXPECT_EQ(far.truncated, 16777216.f);
  // Cut off, not rounded: towards zero on both sides.
  std::vector<float> small(16, 0.f);
  small[0] = 1.75f;
  EXPECT_EQ(add(16777216.f, small, b).once, 16777218.f);
  EXPECT_EQ(add(16777216.f, small, b).truncated, 16777216.f);
  for (float& x : small) x = -x;
  EXPECT_EQ(add(-16777216.f, small, b).truncated, -16777216.f);
}

TEST(Arithmetic, StaysWithinItsBound) {
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return to_float(to_bf16(std::ldexp(static_cast<float>(static_cast<int>(state >> 8 & 511) - 255),
                                       static_cast<int>(state >> 20 & 15) - 8)));
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<float> a(16), b(16);
    const float start = next() * next();
    double exact = static_cast<double>(start), size = std::fabs(exact);
    for (std::size_t k = 0; k < 16; ++k) {
      a[k] = next(), b[k] = next();
      const double term = static_cast<double>(a[k]) * static_cast<double>(b[k]);
      exact += term, size += std::fabs(term);
    }
    const Sum s = add(start, a, b);
    const double unit = std::ldexp(1.0, -24);
    EXPECT_LE(std::fabs(static_cast<double>(s.sequential) - exact), 16 * unit * size);
    EXPECT_LE(std::fabs(static_cast<double>(s.once) - exact), unit * std::fabs(exact));
    EXPECT_LE(std::fabs(static_cast<double>(s.truncated) - exact), 18 * 2 * unit * size);
  }
}

TEST(Arithmetic, KeepsInfinitiesAndNaN) {
  std::vector<float> a(16, 1.f), b(16, 1.f);
  a[3] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(add(0.f, a, b).truncated) && std::isinf(add(0.f, a, b).once));
  b[3] = 0.f;
  EXPECT_TRUE(std::isnan(add(0.f, a, b).truncated) && std::isnan(add(0.f, a, b).once));
}

}  // namespace
}  // namespace plumbline::device::host
