// device/linear/launch.hpp
//
// y[n, g, o] = Σ_i x[n, i]·weight[i, g, o] + bias[g, o], o in a slice [begin, end) of the weight's
// columns, which is read where it lies; and its gradients. Sums in f32; y is stored in `type`,
// gradients in f32. No atomics: every sum has one order.
#pragma once
#include <cstddef>

#include "device/plain.hpp"

namespace plumbline::device {

struct Linear {
  Type type = Type::bf16;              // of x, weight, bias, y, dy
  std::int64_t rows = 0, inputs = 0;   // n, I
  std::int64_t groups = 0, width = 0;  // G, O
  std::int64_t begin = 0, end = 0;     // of O
  const void* x = nullptr;             // n I
  const void* weight = nullptr;        // I G O
  const void* bias = nullptr;          // G O, or null
  void* y = nullptr;                   // n G end-begin
};
struct LinearBackward {
  Linear of;                 // its y is not used
  const void* dy = nullptr;  // n G end-begin
  float* dx = nullptr;       // n I
  float* dweight = nullptr;  // I G O: 0 outside the slice
  float* dbias = nullptr;    // G O, or null
  float* workspace = nullptr;
};
// Bytes; 0 without dbias.
std::size_t linear_backward_workspace(const LinearBackward& args);

PLUMBLINE_LAUNCHER(linear, Linear)
PLUMBLINE_LAUNCHER(linear_backward, LinearBackward)

}  // namespace plumbline::device
