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
template <class T> T pi() {
  static const T value = acos(T(-1));
  return value;
}
template <> inline f32 pi<f32>() { return std::numbers::pi_v<f32>; }
template <> inline f64 pi<f64>() { return std::numbers::pi_v<f64>; }
template <> inline f192 pi<f192>() { return pi_f192(); }

// The shortest text that reads back as x.
inline std::string decimal(double x) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, x);
  return error == std::errc() ? std::string(text, end) : "a number";
}

}  // namespace plumbline
