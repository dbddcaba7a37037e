#include "reference/linear/blocked.hpp"

#include <cstring>

// No vector crosses a function boundary here: all of them are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace plumbline {
namespace {

// Four doubles; the compiler splits them where the machine has narrower registers.
using Four = double __attribute__((vector_size(32)));
constexpr std::size_t fours = panel_columns / 4;

[[gnu::always_inline]] inline Four load(const double* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
[[gnu::always_inline]] inline void store(double* to, const Four& value) {
  std::memcpy(to, &value, sizeof value);
}

// Two rows at a time: eight sums stay in registers while x and the panel stream past.
template <std::size_t rows>
[[gnu::always_inline]] inline void tile(std::size_t depth, const double* x, std::size_t x_stride,
                                        const double* panel, double* y) {
  Four sum[rows][fours];
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < fours; ++c) sum[r][c] = load(y + r * panel_columns + 4 * c);
  }
  for (std::size_t i = 0; i < depth; ++i) {
    for (std::size_t r = 0; r < rows; ++r) {
      const double factor = x[r * x_stride + i];
      const Four spread = {factor, factor, factor, factor};
      for (std::size_t c = 0; c < fours; ++c)
        sum[r][c] += spread * load(panel + i * panel_columns + 4 * c);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < fours; ++c) store(y + r * panel_columns + 4 * c, sum[r][c]);
  }
}

[[gnu::always_inline]] inline void tiles(std::size_t rows, std::size_t depth, const double* x,
                                         std::size_t x_stride, const double* panel, double* y) {
  std::size_t r = 0;
  for (; r + 2 <= rows; r += 2)
    tile<2>(depth, x + r * x_stride, x_stride, panel, y + r * panel_columns);
  if (r < rows) tile<1>(depth, x + r * x_stride, x_stride, panel, y + r * panel_columns);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void tiles_avx2(std::size_t rows, std::size_t depth, const double* x,
                                        std::size_t x_stride, const double* panel, double* y) {
  tiles(rows, depth, x, x_stride, panel, y);
}
#endif

}  // namespace

void add_product(std::size_t rows, std::size_t depth, const double* x, std::size_t x_stride,
                 const double* panel, double* y) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) {
    tiles_avx2(rows, depth, x, x_stride, panel, y);
    return;
  }
#endif
  tiles(rows, depth, x, x_stride, panel, y);
}

}  // namespace plumbline
