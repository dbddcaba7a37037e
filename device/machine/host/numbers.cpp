#include "device/machine/host/numbers.hpp"

#include <limits>

#include "device/machine/host/machine.hpp"

namespace plumbline::device::host {
namespace {

float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x; }

// A number that depends on the seed, the function and its argument: 0 .. 2^32 - 1.
std::uint64_t toss(int function, float x) {
  std::uint64_t h = Machine::current().options.seed * 0x9E3779B97F4A7C15 + as_word(x);
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9 + static_cast<std::uint64_t>(function);
  h = (h ^ (h >> 27)) * 0x94D049BB133111EB;
  return h >> 32;
}

// A float at most `ulp` units away from the exact value.
float within(double exact, int ulp, int function, float x) {
  const auto nearest = static_cast<float>(exact);
  if (!Machine::current().options.wander || nearest == 0 || !std::isfinite(nearest))
    return flush(nearest);
  const double unit = std::ldexp(1.0, std::ilogb(nearest) - 23);
  // The last half unit is the rounding back to f32.
  const double share = static_cast<double>(toss(function, x)) / 2147483648.0 - 1.0;
  return flush(static_cast<float>(exact + share * (ulp - 0.5) * unit));
}

}  // namespace

float fast_exp2(float x) {
  x = flush(x);
  if (x == 0) return 1;
  return within(std::exp2(static_cast<double>(x)), fast_exp2_ulp, 1, x);
}

float fast_log2(float x) {
  x = flush(x);
  if (x == 0) return -std::numeric_limits<float>::infinity();
  const double exact = std::log2(static_cast<double>(x));
  if (!(x > 0.5f && x < 2.f)) return within(exact, fast_log2_ulp, 2, x);
  if (!Machine::current().options.wander) return static_cast<float>(exact);
  const double share = static_cast<double>(toss(2, x)) / 2147483648.0 - 1.0;
  const double rounding = std::ldexp(1.0, -25);  // half a unit of results below 1
  return static_cast<float>(exact + share * (std::ldexp(1.0, -22) - rounding));
}

float fast_reciprocal(float x) {
  x = flush(x);
  return within(1.0 / static_cast<double>(x), fast_reciprocal_ulp, 3, x);
}

float fast_rsqrt(float x) {
  x = flush(x);
  return within(1.0 / std::sqrt(static_cast<double>(x)), fast_rsqrt_ulp, 4, x);
}

}  // namespace plumbline::device::host
