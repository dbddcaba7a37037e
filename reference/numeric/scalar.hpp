// reference/numeric/scalar.hpp
//
// The working precisions and the little that differs between them: their names, exact conversion from double,
// and the split of a value into the pair of doubles that result files hold.
//
//   f32, f64   IEEE float and double, never contracted
//   f192       our own float with a 192-bit mantissa: the fast high precision
//   mp50       Boost.Multiprecision over MPFR, 50 decimal digits, storage inside the object
//   mp100      the same with 100 digits: finite differences are taken in it
//
// MPFR with in-place storage was chosen by measurement (bench/backends.cpp prints the table); the other Boost
// back end, cpp_bin_float, is the independent path of tests/backend_test.cpp.
#pragma once
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <limits>
#include <type_traits>

#include "reference/numeric/contract.hpp"
#include "reference/numeric/f192.hpp"
#include "reference/numeric/precision.hpp"

namespace plumbline {

using f32 = float;
using f64 = double;
using mp50 = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<50, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;
using mp100 = boost::multiprecision::number<
    boost::multiprecision::mpfr_float_backend<100, boost::multiprecision::allocate_stack>,
    boost::multiprecision::et_off>;

template <class V> class Bounded;  // a number with a certified error: numeric/bounded.hpp
class Simulated;                   // a number of one execution: numeric/simulated.hpp

template <class T> constexpr Precision precision_of() {
  if constexpr (std::is_same_v<T, f32>) return Precision::f32;
  if constexpr (std::is_same_v<T, f64>) return Precision::f64;
  if constexpr (std::is_same_v<T, f192>) return Precision::f192;
  if constexpr (std::is_same_v<T, mp50>) return Precision::mp50;
  if constexpr (std::is_same_v<T, Bounded<f64>>) return Precision::bounded;
  if constexpr (std::is_same_v<T, Bounded<f192>>) return Precision::bounded192;
  if constexpr (std::is_same_v<T, Simulated>) return Precision::simulated;
  return Precision::mp100;
}

// Inputs and cotangents are bare numbers; for scalars that carry an error this names the type without one.
template <class S> struct ExactOf { using type = S; };
template <class S> using Exact = typename ExactOf<S>::type;

// ---- elementary functions of the machine precisions, beside those found by argument-dependent lookup ---------
inline f32 exp(f32 x) { return std::exp(x); }
inline f64 exp(f64 x) { return std::exp(x); }
inline f32 expm1(f32 x) { return std::expm1(x); }
inline f64 expm1(f64 x) { return std::expm1(x); }
inline f32 log(f32 x) { return std::log(x); }
inline f64 log(f64 x) { return std::log(x); }
inline f32 sqrt(f32 x) { return std::sqrt(x); }
inline f64 sqrt(f64 x) { return std::sqrt(x); }
inline f32 sin(f32 x) { return std::sin(x); }
inline f64 sin(f64 x) { return std::sin(x); }
inline f32 cos(f32 x) { return std::cos(x); }
inline f64 cos(f64 x) { return std::cos(x); }

template <class T> bool is_nan(const T& x) { return !(x == x); }
template <class T> bool is_finite(const T& x) { return x - x == T(0); }
template <class T> T infinity() { return std::numeric_limits<T>::infinity(); }
template <class T> T not_a_number() { return std::numeric_limits<T>::quiet_NaN(); }
template <class T> T magnitude(const T& x) { return x < T(0) ? T(-x) : x; }

// A double, and a constant that a kernel may hold rounded: the same number in every precision here.
template <class T> struct FromDouble {
  static T make(double x) { return T(x); }
  static T constant(double x) { return T(x); }
};
template <> struct FromDouble<f32> {
  static f32 make(double x) { return static_cast<f32>(x); }
  static f32 constant(double x) { return make(x); }
};
template <class T> T from_double(double x) { return FromDouble<T>::make(x); }

// x = high + low to about 106 bits; low is 0 beside an infinity or a NaN.
struct DoublePair {
  double high = 0, low = 0;
};
template <class T> DoublePair split(const T& x) {
  const double high = static_cast<double>(x);
  if (!std::isfinite(high)) return {high, 0};
  return {high, static_cast<double>(T(x - from_double<T>(high)))};
}

}  // namespace plumbline
