// device/layer_norm/launch.hpp
//
// y = (x − mean)·(var + eps)^(−1/2)·weight + bias over the last axis, var the biased variance from
// deviations, and its gradients. Sums in f32; y is stored in `type`, gradients in f32. No atomics.
#pragma once
#include <cstddef>

#include "device/plain.hpp"

namespace plumbline::device {

struct LayerNorm {
  Type type = Type::bf16;  // of x, weight, bias, y, dy
  std::int64_t rows = 0, width = 0;
  float eps = 0;
  const void* x = nullptr;       // rows width
  const void* weight = nullptr;  // width, or null
  const void* bias = nullptr;    // width, or null
  void* y = nullptr;             // rows width
};
struct LayerNormBackward {
  LayerNorm of;              // its y is not used
  const void* dy = nullptr;  // rows width
  float* dx = nullptr;       // rows width
  float* dweight = nullptr;  // width, or null
  float* dbias = nullptr;    // width, or null
  float* workspace = nullptr;
};
std::size_t layer_norm_backward_workspace(const LayerNormBackward& args);  // bytes

PLUMBLINE_LAUNCHER(layer_norm, LayerNorm)
PLUMBLINE_LAUNCHER(layer_norm_backward, LayerNormBackward)

}  // namespace plumbline::device
