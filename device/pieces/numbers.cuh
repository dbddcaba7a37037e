// device/pieces/numbers.cuh: stored numbers as f32 and back, and functions the machine has no single
// instruction for.
#pragma once
#include "device/machine/machine.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class T> struct Zero;
template <> struct Zero<bf16> {
  DEVICE static bf16 value() { return {0}; }
};
template <> struct Zero<float> {
  DEVICE static float value() { return 0.f; }
};
DEVICE float number(bf16 x) { return to_float(x); }
DEVICE float number(float x) { return x; }
template <class T> struct Stored;
template <> struct Stored<bf16> {
  DEVICE static bf16 of(float x) { return to_bf16(x); }
};
template <> struct Stored<float> {
  DEVICE static float of(float x) { return x; }
};

// e^x for x ≤ 0, 3 ulp. The product x·log2 e is rounded, which for x = −80 alone would cost 60 ulp:
// what the rounding lost, and the part of log2 e below f32, comes back as a factor 1 + ln 2·rest.
DEVICE float exponential(float x) {
  if (x < -128.f) return 0.f;  // e^x is below f32; and −inf has no rest
  constexpr float log2e = 0x1.715476p+0f, log2e_rest = 0x1.4ae0cp-26f, ln2 = 0x1.62e43p-1f;
  const float power = x * log2e;
  const float rest = fused(x, log2e_rest, fused(x, log2e, -power));
  const float result = fast_exp2(power);
  return fused(result, rest * ln2, result);
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
