// reference/numeric/constants.hpp
//
// The real numbers that formulas name, to the last bit of each working precision, and the text by
// which an error names a number of an option.
#pragma once
#include <charconv>
#include <numbers>
#include <string>

#include "reference/numeric/scalar.hpp"

namespace plumbline {

// π. In the multiprecision types arccos(−1), which MPFR rounds correctly, once.
template <class T> struct Pi {
  static T make() {
    static const T value = acos(T(-1));
    return value;
  }
};
template <> struct Pi<f32> {
  static f32 make() { return std::numbers::pi_v<f32>; }
};
template <> struct Pi<f64> {
  static f64 make() { return std::numbers::pi_v<f64>; }
};
template <> struct Pi<f192> {
  static f192 make() { return pi_f192(); }
};
template <class T> T pi() { return Pi<T>::make(); }

// The shortest text that reads back as x.
inline std::string decimal(double x) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, x);
  return error == std::errc() ? std::string(text, end) : "a number";
}

}  // namespace plumbline
