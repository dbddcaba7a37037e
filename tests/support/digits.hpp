// tests/support/digits.hpp
//
// How many decimal digits two results share, counted from a stated scale: a row's (or a whole tensor's) largest
// finite magnitude, or a floor where what is compared is a difference of larger numbers. Everything is compared in
// mp100, to which every working precision converts exactly.
#pragma once
#include <algorithm>
#include <limits>
#include <string>

#include "reference/numeric/scalar.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::support {

template <class T> mp100 wide(const T& x) { return mp100(x); }
template <> inline mp100 wide<f192>(const f192& x) {
  const f192::Parts parts = x.parts();
  if (parts.kind == f192::Kind::nan) return not_a_number<mp100>();
  mp100 value = 0;
  if (parts.kind == f192::Kind::infinite) value = infinity<mp100>();
  if (parts.kind == f192::Kind::finite) {
    for (std::size_t i = 3; i-- > 0;) value = value * mp100(0x1p64) + mp100(parts.limbs[i]);
    mpfr_mul_2si(value.backend().data(), value.backend().data(), parts.exponent - 192, MPFR_RNDN);
  }
  return parts.negative ? mp100(-value) : value;
}

inline constexpr double all_digits = std::numeric_limits<double>::infinity();

// Infinite when equal (also two NaNs), -infinite when only one is a number.
inline double digits(const mp100& found, const mp100& expected, const mp100& scale) {
  if (found == expected || (is_nan(found) && is_nan(expected))) return all_digits;
  if (!is_finite(found) || !is_finite(expected) || scale == 0) return -all_digits;
  return -static_cast<double>(
      mp100(boost::multiprecision::log10(mp100(magnitude(mp100(found - expected)) / scale))));
}

struct Agreement {
  double digits = all_digits;
  std::string where;  // of the worst element

  void note(double d, const std::string& place) {
    if (d < digits) digits = d, where = place;
  }
  void note(const Agreement& other) { note(other.digits, other.where); }
};

// Rows are the last axis of tensors with three or more; others are one row.
template <class A, class B> Agreement agreement(const Array<A>& found, const Array<B>& expected,
                                                const std::string& name, double floor = 0) {
  Agreement result;
  if (found.shape != expected.shape) {
    result.note(-all_digits, name + ": shape " + to_string(found.shape) + ", expected " +
                                 to_string(expected.shape));
    return result;
  }
  const std::size_t count = found.values.size();
  const std::size_t width =
      found.shape.size() >= 3 ? static_cast<std::size_t>(found.shape.back()) : count;
  for (std::size_t first = 0; first < count; first += width) {
    mp100 scale = mp100(floor);
    for (std::size_t i = first; i < first + width; ++i) {
      const mp100 size = magnitude(wide(expected.values[i]));
      if (is_finite(size) && size > scale) scale = size;
    }
    for (std::size_t i = first; i < first + width; ++i) {
      const mp100 x = wide(found.values[i]), y = wide(expected.values[i]);
      const double shared = digits(x, y, scale);
      if (shared < result.digits) {
        result.note(shared, name + " element " + std::to_string(i) + ": " + x.str(20) +
                                ", expected " + y.str(20));
      }
    }
  }
  return result;
}

}  // namespace plumbline::support
