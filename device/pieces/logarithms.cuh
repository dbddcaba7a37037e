// device/pieces/logarithms.cuh: logarithms in natural units, 2 ulp.
#pragma once
#include "device/machine/machine.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

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
