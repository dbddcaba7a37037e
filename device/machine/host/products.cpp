#include "device/machine/host/products.hpp"

#include <cmath>
#include <cstring>

namespace plumbline::device::host {
namespace {

constexpr int depth = 16;
using Eight = float __attribute__((vector_size(32)));

// A product of two bf16 is exact in f32, so each step rounds once. Columns come in groups of eight,
// which stay in registers; wider vectors change no bit.
#if defined(__x86_64__) && defined(__ELF__)
__attribute__((target_clones("default", "avx2")))
#endif
void sequential(float* d, const float* a, const float* b, int rows, int columns) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; j += 8) {
      Eight sum, right;
      std::memcpy(&sum, d + i * columns + j, sizeof sum);
      for (int k = 0; k < depth; ++k) {
        std::memcpy(&right, b + k * columns + j, sizeof right);
        sum += a[i * depth + k] * right;
      }
      std::memcpy(d + i * columns + j, &sum, sizeof sum);
    }
}

double once(double sum, const float* a, const float* b, int columns) {
  for (int k = 0; k < depth; ++k)
    sum += static_cast<double>(a[k]) * static_cast<double>(b[k * columns]);
  return sum;
}

float cut(double x) {  // to f32, towards zero
  const auto near = static_cast<float>(x);
  return std::fabs(static_cast<double>(near)) > std::fabs(x) ? std::nextafter(near, 0.f) : near;
}

float truncated(float d, const float* a, const float* b, int columns) {
  double term[depth + 1], largest = std::fabs(static_cast<double>(d));
  term[depth] = static_cast<double>(d);
  for (int k = 0; k < depth; ++k) {
    term[k] = static_cast<double>(a[k]) * static_cast<double>(b[k * columns]);
    largest = std::fmax(largest, std::fabs(term[k]));
  }
  if (largest == 0 || !std::isfinite(largest))
    return static_cast<float>(once(static_cast<double>(d), a, b, columns));
  const int unit = std::ilogb(largest) - 23;
  double sum = 0;
  for (const double x : term) sum += std::trunc(std::ldexp(x, -unit));
  return cut(std::ldexp(sum, unit));
}

}  // namespace

void accumulate(Products model, float* d, const float* a, const float* b, int rows, int columns) {
  if (model == Products::sequential) return sequential(d, a, b, rows, columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      float& x = d[i * columns + j];
      x = model == Products::once
              ? static_cast<float>(once(static_cast<double>(x), a + i * depth, b + j, columns))
              : truncated(x, a + i * depth, b + j, columns);
    }
}

}  // namespace plumbline::device::host
