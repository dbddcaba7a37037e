#include "reference/linear/blocked.hpp"

#include <cstring>

// No vector crosses a function boundary here: all of them are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace plumbline {
namespace {

// Four or eight doubles; the compiler splits them where the machine has narrower registers.
using Four = double __attribute__((vector_size(32)));
using Eight = double __attribute__((vector_size(64)));

template <class V> [[gnu::always_inline]] inline V load(const double* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class V> [[gnu::always_inline]] inline void store(double* to, const V& value) {
  std::memcpy(to, &value, sizeof value);
}

// A few rows at a time: their sums stay in registers while x and the panel stream past.
template <class V, std::size_t rows>
[[gnu::always_inline]] inline void tile(std::size_t depth, const double* x, std::size_t x_stride,
                                        const double* panel, double* y) {
  constexpr std::size_t lanes = sizeof(V) / sizeof(double), parts = panel_columns / lanes;
  V sum[rows][parts];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < parts; ++c) sum[r][c] = load<V>(y + r * panel_columns + lanes * c);
  }
  for (std::size_t i = 0; i < depth; ++i) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < rows; ++r) {
      const V spread = x[r * x_stride + i] - V{};  // exact: x − 0 is x, −0 too
#pragma GCC unroll 4
      for (std::size_t c = 0; c < parts; ++c)
        sum[r][c] += spread * load<V>(panel + i * panel_columns + lanes * c);
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (std::size_t c = 0; c < parts; ++c) store(y + r * panel_columns + lanes * c, sum[r][c]);
  }
}

// `most` rows at a time: eight sums, as many as hide the latency of an addition.
template <class V, std::size_t most>
[[gnu::always_inline]] inline void tiles(std::size_t rows, std::size_t depth, const double* x,
                                         std::size_t x_stride, const double* panel, double* y) {
  std::size_t r = 0;
  for (; r + most <= rows; r += most)
    tile<V, most>(depth, x + r * x_stride, x_stride, panel, y + r * panel_columns);
  for (; r < rows; ++r) tile<V, 1>(depth, x + r * x_stride, x_stride, panel, y + r * panel_columns);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void tiles_avx2(std::size_t rows, std::size_t depth, const double* x,
                                        std::size_t x_stride, const double* panel, double* y) {
  tiles<Four, 2>(rows, depth, x, x_stride, panel, y);
}
[[gnu::target("avx512f")]] void tiles_avx512(std::size_t rows, std::size_t depth, const double* x,
                                             std::size_t x_stride, const double* panel, double* y) {
  tiles<Eight, 4>(rows, depth, x, x_stride, panel, y);
}
#endif

}  // namespace

void add_product(std::size_t rows, std::size_t depth, const double* x, std::size_t x_stride,
                 const double* panel, double* y) {
#if defined(__x86_64__)
  static const bool avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx512) {
    tiles_avx512(rows, depth, x, x_stride, panel, y);
    return;
  }
  if (avx2) {
    tiles_avx2(rows, depth, x, x_stride, panel, y);
    return;
  }
#endif
  tiles<Four, 2>(rows, depth, x, x_stride, panel, y);
}

}  // namespace plumbline
