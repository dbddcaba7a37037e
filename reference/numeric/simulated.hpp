// reference/numeric/simulated.hpp
//
// One number of one execution of a contract: every operation rounds as the contract's arithmetic says, or, as the
// adversary, takes any value that the contract's model of rounding allows. Operations run in it unchanged; what comes
// out must lie within the bounds of numeric/bounded.hpp. tests/bounds_test.cpp and `./dev soak` do that.
// The value is held in double; formats whose unit is below 2^-30 are not simulated.
#pragma once
#include <cmath>

#include "reference/numeric/constants.hpp"
#include "reference/numeric/contract.hpp"
#include "reference/numeric/primitives.hpp"

namespace plumbline {

// How this thread's simulated numbers round.
struct Execution {
  enum class Rounding {
    declared,
    away,
    toward,
    up,
    down,
    random,
    runs
  } rounding = Rounding::declared;
  std::uint64_t seed = 1;
  double sign = 1;  // of a run

  // Uniform in [0, 1), splitmix64.
  double draw() {
    std::uint64_t z = (seed += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
};
inline Execution& this_execution() {
  thread_local Execution execution;
  return execution;
}

class Simulated {
 public:
  Simulated() = default;
  template <class N>
  requires std::is_arithmetic_v<N>
  explicit Simulated(N x) : value_(static_cast<double>(x)) {}
  double value() const { return value_; }
  explicit operator double() const { return value_; }

  // x as the execution rounds it, to a relative unit and an absolute least.
  static Simulated rounded(double x, double unit, double least);
  static Simulated accurate(double x, double error, double least);  // of an elementary function

  Simulated& operator+=(Simulated x) {
    return *this = rounded(value_ + x.value_, this_arithmetic()->add_unit, 0);
  }
  Simulated& operator-=(Simulated x) { return *this += -x; }
  Simulated& operator*=(Simulated x) { return *this = *this * x; }
  Simulated& operator/=(Simulated x) { return *this = *this / x; }
  friend Simulated operator-(Simulated x) { return Simulated(-x.value_); }
  friend Simulated operator+(Simulated a, Simulated b) {
    return rounded(a.value_ + b.value_, this_arithmetic()->unit, 0);
  }
  friend Simulated operator-(Simulated a, Simulated b) { return a + (-b); }
  friend Simulated operator*(Simulated a, Simulated b) {
    return rounded(a.value_ * b.value_, this_arithmetic()->unit, this_arithmetic()->least);
  }
  friend Simulated operator/(Simulated a, Simulated b) {
    return accurate(a.value_ / b.value_, this_arithmetic()->division, this_arithmetic()->least);
  }
  friend bool operator==(Simulated a, Simulated b) { return a.value_ == b.value_; }
  friend auto operator<=>(Simulated a, Simulated b) { return a.value_ <=> b.value_; }

 private:
  double value_ = 0;
};

inline Simulated Simulated::rounded(double x, double unit, double least) {
  if (x == 0 || !std::isfinite(x)) return Simulated(x);
  Execution& e = this_execution();
  const Arithmetic& a = *this_arithmetic();
  using Rounding = Execution::Rounding;
  double y = x;
  if (e.rounding == Rounding::declared) {
    const bool nearest =
        a.nearest || unit == a.unit;  // a truncating accumulator has twice the unit
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    const int bits = static_cast<int>(std::lround(-std::log2(unit))) + (nearest ? 0 : 1);
    const double scaled = std::ldexp(fraction, bits);
    y = std::ldexp(nearest ? std::nearbyint(scaled) : std::trunc(scaled), exponent - bits);
  } else {
    double sign = 1;
    switch (e.rounding) {
      case Rounding::away: sign = 1; break;
      case Rounding::toward: sign = -1; break;
      case Rounding::up: sign = x > 0 ? 1 : -1; break;
      case Rounding::down: sign = x > 0 ? -1 : 1; break;
      case Rounding::random: sign = e.draw() < 0.5 ? -1 : 1; break;
      default:
        if (e.draw() < 1.0 / 150) e.sign = -e.sign;
        sign = e.sign;
    }
    y = x * (1 + sign * unit * 0.999999);
  }
  if (a.flush && least > 0 && std::fabs(y) < least) y = 0;
  return Simulated(y);
}
inline Simulated Simulated::accurate(double x, double error, double least) {
  Execution& e = this_execution();
  if (e.rounding != Execution::Rounding::declared || !(std::fabs(x) > 0) || !std::isfinite(x))
    return rounded(x, error, least);
  const double unit = this_arithmetic()->unit, room = std::max(0.0, error - unit);
  return rounded(x * (1 + room * (2 * e.draw() - 1)), unit, least);
}

inline bool is_nan(Simulated x) { return std::isnan(x.value()); }
inline bool is_finite(Simulated x) { return std::isfinite(x.value()); }
inline Simulated exp(Simulated x) {
  if (x.value() == 0) return Simulated(1);
  return Simulated::accurate(std::exp(x.value()), this_arithmetic()->exp, this_arithmetic()->least);
}
inline Simulated expm1(Simulated x) { return exp(x) - Simulated(1); }
inline Simulated log(Simulated x) {
  return Simulated::accurate(std::log(x.value()), this_arithmetic()->log, 0);
}
inline Simulated sqrt(Simulated x) {
  return Simulated::accurate(std::sqrt(x.value()), this_arithmetic()->rsqrt, 0);
}
inline Simulated sin(Simulated x) {
  return Simulated::accurate(std::sin(x.value()), this_arithmetic()->sin, 0);
}
inline Simulated cos(Simulated x) {
  return Simulated::accurate(std::cos(x.value()), this_arithmetic()->cos, 0);
}
inline Simulated floor(Simulated x) { return Simulated(std::floor(x.value())); }
inline Simulated ceil(Simulated x) { return Simulated(std::ceil(x.value())); }

template <> struct FromDouble<Simulated> {
  static Simulated make(double x) { return Simulated(x); }
  static Simulated constant(double x) {
    if (!std::isfinite(x) || static_cast<double>(static_cast<float>(x)) == x) return Simulated(x);
    return Simulated::rounded(x, this_arithmetic()->unit, 0);
  }
};
template <> struct Pi<Simulated> {
  static Simulated make() { return Simulated::rounded(pi<f64>(), this_arithmetic()->unit, 0); }
};
inline Simulated round_at(Point point, Simulated x) {
  const auto i = static_cast<std::size_t>(point);
  const Arithmetic& a = *this_arithmetic();
  return a.point_unit[i] > 0 ? Simulated::rounded(x.value(), a.point_unit[i], a.point_least[i]) : x;
}

}  // namespace plumbline

template <> class std::numeric_limits<plumbline::Simulated> {
 public:
  static constexpr bool is_specialized = true;
  static plumbline::Simulated infinity() {
    return plumbline::Simulated(std::numeric_limits<double>::infinity());
  }
  static plumbline::Simulated quiet_NaN() {
    return plumbline::Simulated(std::numeric_limits<double>::quiet_NaN());
  }
};
