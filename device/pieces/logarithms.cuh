// device/pieces/logarithms.cuh: exponentials and logarithms in natural units, good to 2 ulp.
#pragma once
#include "device/machine/machine.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

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

// fast_log2 is off by 2^-22 near 1, where logarithms of softmax sums lie. Here ln x = e·ln 2 + ln f
// with f in [√½, √2), and ln f = 2·atanh((f − 1)/(f + 1)), whose sixth term is below 2^-27 of the first.
DEVICE float natural_log(float x) {
  if (!(x > 0.f && x < as_float(0x7F800000))) return x > 0.f ? x : as_float(0xFF800000);
  float f = as_float((as_word(x) & 0x7FFFFF) | 0x3F800000);
  int e = static_cast<int>(as_word(x) >> 23) - 127;
  if (f > 1.41421356f) f *= 0.5f, ++e;
  const float t = (f - 1.f) / (f + 1.f), s = t * t;
  float series = fused(s, 1.f / 11, 1.f / 9);
  series = fused(s, series, 1.f / 7);
  series = fused(s, series, 1.f / 5);
  series = fused(s, series, 1.f / 3);
  const float ln_f = fused(2.f * t, s * series, 2.f * t);
  return fused(static_cast<float>(e), 0.693147182f, ln_f);
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
