// device/rms_norm/launch.hpp
//
// y = x·(mean(x²) + eps)^(−1/2)·weight over the last axis, and its gradients. Sums in f32; y is
// stored in `type`, gradients in f32. No atomics: every sum has one order.
#pragma once
#include <cstddef>

#include "device/plain.hpp"

namespace plumbline::device {

struct RmsNorm {
  Type type = Type::bf16;  // of x, weight, y, dy
  std::int64_t rows = 0, width = 0;
  float eps = 0;
  const void* x = nullptr;       // rows width
  const void* weight = nullptr;  // width, or null
  void* y = nullptr;             // rows width
};
struct RmsNormBackward {
  RmsNorm of;                // its y is not used
  const void* dy = nullptr;  // rows width
  float* dx = nullptr;       // rows width
  float* dweight = nullptr;  // width, or null
  float* workspace = nullptr;
};
std::size_t rms_norm_backward_workspace(const RmsNormBackward& args);  // bytes

PLUMBLINE_LAUNCHER(rms_norm, RmsNorm)
PLUMBLINE_LAUNCHER(rms_norm_backward, RmsNormBackward)

}  // namespace plumbline::device
