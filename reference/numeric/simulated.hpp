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

  // Nothing is rounded where an operand is 0, or a factor 1.
  Simulated& operator+=(Simulated x);
  Simulated& operator-=(Simulated x) { return *this += -x; }
  Simulated& operator*=(Simulated x) { return *this = *this * x; }
  Simulated& operator/=(Simulated x) { return *this = *this / x; }
  friend Simulated operator-(Simulated x) { return Simulated(-x.value_); }
  friend Simulated operator+(Simulated a, Simulated b);
  friend Simulated operator-(Simulated a, Simulated b) { return a + (-b); }
  friend Simulated operator*(Simulated a, Simulated b);
  friend Simulated operator/(Simulated a, Simulated b);
  friend bool operator==(Simulated a, Simulated b) { return a.value_ == b.value_; }
  friend auto operator<=>(Simulated a, Simulated b) { return a.value_ <=> b.value_; }

 private:
  double value_ = 0;
};

inline bool is_nan(Simulated x) { return std::isnan(x.value()); }
inline bool is_finite(Simulated x) { return std::isfinite(x.value()); }
Simulated exp(Simulated x);
Simulated log(Simulated x);
Simulated sqrt(Simulated x);
Simulated sin(Simulated x);
Simulated cos(Simulated x);
inline Simulated expm1(Simulated x) { return exp(x) - Simulated(1); }
inline Simulated floor(Simulated x) { return Simulated(std::floor(x.value())); }
inline Simulated ceil(Simulated x) { return Simulated(std::ceil(x.value())); }

template <> struct FromDouble<Simulated> {
  static Simulated make(double x) { return Simulated(x); }
  static Simulated constant(double x);
};
template <> struct Pi<Simulated> {
  static Simulated make() { return Simulated::rounded(pi<f64>(), this_arithmetic()->unit, 0); }
};
Simulated round_at(Point point, Simulated x);

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
