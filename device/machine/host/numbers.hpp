// device/machine/host/numbers.hpp
//
// Numbers as the hardware has them. The fast_* functions promise an error, not bits: their result
// here is any value within the promise, chosen by the seed, and the same for the same argument
// throughout a run, as on hardware. Errors by the PTX ISA, arguments and results flushed to zero:
//
//   fast_exp2        2 ulp                   fast_reciprocal   1 ulp
//   fast_log2        2 ulp; between 1/2 and 2 an absolute error of 2^-22
//   fast_rsqrt       2 ulp
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "device/machine/types.hpp"

namespace plumbline::device::host {

constexpr int fast_exp2_ulp = 2, fast_log2_ulp = 2, fast_reciprocal_ulp = 1, fast_rsqrt_ulp = 2;

float fast_exp2(float x);
float fast_log2(float x);
float fast_reciprocal(float x);
float fast_rsqrt(float x);

inline float fused(float a, float b, float c) { return std::fma(a, b, c); }

inline std::uint32_t as_word(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float as_float(std::uint32_t x) { return std::bit_cast<float>(x); }
inline float to_float(bf16 x) { return as_float(static_cast<std::uint32_t>(x.bits) << 16); }
// To nearest, ties to even; every NaN becomes 0x7FFF, as cvt.rn.bf16x2 has it.
inline bf16 to_bf16(float x) {
  const std::uint32_t u = as_word(x);
  if ((u & 0x7FFFFFFF) > 0x7F800000) return {0x7FFF};
  return {static_cast<std::uint16_t>((u + 0x7FFF + (u >> 16 & 1)) >> 16)};
}
inline std::uint32_t pack(float low, float high) {
  return std::uint32_t{to_bf16(low).bits} | std::uint32_t{to_bf16(high).bits} << 16;
}

// NaN wins.
inline float maximum(float a, float b) {
  return std::isnan(a) ? a : std::isnan(b) || b > a ? b : a;
}
inline float minimum(float a, float b) {
  return std::isnan(a) ? a : std::isnan(b) || b < a ? b : a;
}
inline int maximum(int a, int b) { return a > b ? a : b; }
inline int minimum(int a, int b) { return a < b ? a : b; }

}  // namespace plumbline::device::host
