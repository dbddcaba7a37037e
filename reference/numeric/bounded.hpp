// reference/numeric/bounded.hpp
//
// A number with a certified error: for every execution that a contract allows, the executed number lies within
// total() of the value (tier 1, proven), and where roundings are to nearest within likely() with a margin of six
// standard deviations (tier 2). Operations run in it unchanged.
//   value   of exact arithmetic on the exact inputs
//   own     bound of the error, terms of an unfinished sum apart
//   spread  variance of its independent part            common  bound of the part that adds up linearly
//   gauge   the same expression over magnitudes: what an error is to be seen against where the value cancels
// Rules. A sum (dot, sum, +=) may be executed in any order: its rounding error is γ(n)·Σ(|x| + error of x), known only
// when it ends, so an unfinished sum carries n and Σ|x| along. Products, quotients and elementary functions: first
// order, the product of the errors, and one rounding of the result widened by its error. Softmax: LogSum below.
// Variances are u²v²/3 for a rounding and n·max(Σx⁺, Σx⁻)²·u²/3 for a sum; second order, underflow, constants and
// kinks are common. docs/bounds.md derives each rule.
// Source: Higham, Accuracy and Stability of Numerical Algorithms, chapters 2 to 4; Higham and Mary 2019.
#pragma once
#include <algorithm>
#include <cmath>

#include "reference/numeric/constants.hpp"
#include "reference/numeric/contract.hpp"
#include "reference/numeric/primitives.hpp"

namespace plumbline {

template <class V> class Bounded {
 public:
  Bounded() = default;
  template <class N>
  requires std::is_arithmetic_v<N>
  explicit Bounded(N x) : value_(from_double<V>(static_cast<double>(x))) {
    gauge_ = std::fabs(static_cast<double>(x));
  }
  static Bounded exact(const V& value) {
    Bounded x;
    x.value_ = value;
    x.gauge_ = std::fabs(static_cast<double>(value));
    return x;
  }
  static Bounded of(const V& value, double own, double spread, double common, double gauge) {
    Bounded x;
    x.value_ = value, x.own_ = own, x.spread_ = spread, x.common_ = common, x.gauge_ = gauge;
    return x;
  }
  template <class U> explicit Bounded(const Bounded<U>& x)
      : value_(from_double<V>(static_cast<double>(x.value()))) {
    const Bounded<U> done = x.finished();
    own_ = done.total(), spread_ = done.spread(), common_ = done.common(), gauge_ = done.gauge();
  }

  const V& value() const { return value_; }
  double magnitude() const { return std::fabs(static_cast<double>(value_)); }
  double gauge() const { return gauge_; }
  bool is_exact() const { return own_ == 0 && terms_ == 0; }
  // Of a finished number; of an unfinished sum the error that its end will have.
  double total() const { return terms_ > 1 ? own_ + rounding() : own_; }
  double spread() const { return terms_ > 1 ? spread_ + rounding_spread() : spread_; }
  double common() const { return common_; }
  double likely() const { return std::min(total(), common() + 6 * std::sqrt(spread())); }

  Bounded finished() const {
    if (terms_ == 0) return *this;
    return of(value_, total(), spread(), common_, gauge_);
  }

  Bounded& operator+=(const Bounded& x) { return accumulate(x, 1); }
  Bounded& operator-=(const Bounded& x) { return accumulate(-x, 1); }
  Bounded& operator*=(const Bounded& x) { return *this = *this * x; }
  Bounded& operator/=(const Bounded& x) { return *this = *this / x; }

  friend Bounded operator-(const Bounded& x) {
    Bounded r = x;
    r.value_ = -x.value_;
    return r;
  }
  friend Bounded operator+(const Bounded& a, const Bounded& b) {
    const double error = a.total() + b.total();
    return of(V(a.value_ + b.value_), error, a.spread() + b.spread(), a.common_ + b.common_,
              a.gauge_ + b.gauge_)
        .rounded(arithmetic().unit, 0);
  }
  friend Bounded operator-(const Bounded& a, const Bounded& b) { return a + (-b); }
  friend Bounded operator*(const Bounded& a, const Bounded& b) {
    const double x = a.magnitude(), y = b.magnitude(), ea = a.total(), eb = b.total();
    double common = times(x, b.common_) + times(y, a.common_);
    if (a.common_ > 0 || b.common_ > 0)
      common += std::min(times(ea, eb), times(a.likely(), b.likely()));
    return of(V(a.value_ * b.value_), times(x, eb) + times(y, ea) + times(ea, eb),
              times(x * x, b.spread()) + times(y * y, a.spread()), common, a.gauge_ * b.gauge_)
        .rounded(arithmetic().unit, arithmetic().least);
  }
  friend Bounded operator/(const Bounded& a, const Bounded& b) {
    const double y = b.magnitude(), eb = b.total(), least = y - eb;
    const V value = a.value_ / b.value_;
    const double q = std::fabs(static_cast<double>(value));
    if (!(least > 0))
      return of(value, a.magnitude() == 0 && a.total() == 0 ? 0 : unknown(), 0, 0, a.gauge_ / y);
    return of(value, (a.total() + times(q, eb)) / least,
              (a.spread() + q * q * b.spread()) / (y * y),
              (a.common_ + q * b.common_) / y + (a.likely() + q * b.likely()) / y * eb / least,
              a.gauge_ / y)
        .rounded(std::max(arithmetic().division, arithmetic().unit), arithmetic().least);
  }

  friend bool operator==(const Bounded& a, const Bounded& b) { return a.value_ == b.value_; }
  friend bool operator<(const Bounded& a, const Bounded& b) { return a.value_ < b.value_; }
  friend bool operator>(const Bounded& a, const Bounded& b) { return a.value_ > b.value_; }
  friend bool operator<=(const Bounded& a, const Bounded& b) { return a.value_ <= b.value_; }
  friend bool operator>=(const Bounded& a, const Bounded& b) { return a.value_ >= b.value_; }
  explicit operator double() const { return static_cast<double>(value_); }

  // One rounding of the result: relative to what may be there, and what underflow costs.
  Bounded rounded(double unit, double least) const {
    Bounded r = finished();
    const double v = r.magnitude();
    if (v == 0 && r.own_ == 0) least = 0;  // an exact zero stays one
    r.spread_ += unit * unit * v * v / 3;
    r.common_ += least + unit * std::min(r.own_, r.likely());
    r.own_ += unit * (v + r.own_) + least;
    return r;
  }
  // What an element shares with its whole row is not independent of the others.
  Bounded shared() const {
    Bounded r = finished();
    r.common_ += 6 * std::sqrt(r.spread_);
    r.spread_ = 0;
    return r;
  }
  Bounded widened(double own, double common) const {
    Bounded r = finished();
    r.own_ += own, r.common_ += common;
    return r;
  }
  static const Arithmetic& arithmetic() { return *this_arithmetic(); }
  static double unknown() { return std::numeric_limits<double>::infinity(); }

 private:
  // 0·∞ is 0: what has no weight has no error.
  static double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }
  double rounding() const { return arithmetic().sum_error(terms_) * reach_; }
  double rounding_spread() const {
    const double half = (mass_ + magnitude()) / 2, u = arithmetic().sum_error(1) / 2;
    return terms_ * half * half * u * u / 3;
  }
  Bounded& accumulate(const Bounded& x, double) {
    if (terms_ == 0) begin();
    if (x.terms_ > 0) {  // a part of the sum, whose terms may be added in any order with ours
      own_ += x.own_, spread_ += x.spread_;
      terms_ += x.terms_, reach_ += x.reach_, mass_ += x.mass_;
    } else if (!(x.magnitude() == 0 && x.own_ == 0)) {
      own_ += x.own_, spread_ += x.spread_;
      terms_ += 1, reach_ += x.magnitude() + x.own_, mass_ += x.magnitude();
    }
    common_ += x.common_;
    gauge_ += x.gauge_;
    value_ += x.value_;
    return *this;
  }
  void begin() {
    if (magnitude() == 0 && own_ == 0) return;
    terms_ = 1, reach_ = magnitude() + own_, mass_ = magnitude();
  }

  V value_{0};
  double own_ = 0, spread_ = 0, common_ = 0, gauge_ = 0;
  double terms_ = 0, reach_ = 0, mass_ = 0;  // of an unfinished sum
};

template <class T> struct IsBounded : std::false_type {};
template <class V> struct IsBounded<Bounded<V>> : std::true_type {};

// ---- elementary functions ----------------------------------------------------------------------------------------
template <class V> bool is_nan(const Bounded<V>& x) { return is_nan(x.value()); }
template <class V> bool is_finite(const Bounded<V>& x) { return is_finite(x.value()); }

template <class V> Bounded<V> exp(const Bounded<V>& x) {
  const V value = exp(x.value());
  const double v = static_cast<double>(value), error = x.total(), likely = x.likely();
  const Arithmetic& a = Bounded<V>::arithmetic();
  if (!std::isfinite(v)) return Bounded<V>::exact(value);
  return Bounded<V>::of(value, v == 0 ? 0 : v * std::expm1(error), v * v * x.spread(),
                        v * (x.common() + (std::expm1(likely) - likely)), v)
      .rounded(a.exp, a.least);
}
template <class V> Bounded<V> expm1(const Bounded<V>& x) { return exp(x) - Bounded<V>(1); }
template <class V> Bounded<V> log(const Bounded<V>& x) {
  const V value = log(x.value());
  const double v = x.magnitude(), error = x.total() / v, likely = x.likely() / v;
  const double gauge = std::fabs(static_cast<double>(value)) + 1;
  if (!(v > 0))
    return Bounded<V>::of(value, x.total() > 0 ? Bounded<V>::unknown() : 0, 0, 0, gauge);
  if (!(error < 1))
    return Bounded<V>::of(value, Bounded<V>::unknown(), 0, Bounded<V>::unknown(), gauge);
  const double second = likely < 1 ? -std::log1p(-likely) - likely : 0;
  return Bounded<V>::of(value, -std::log1p(-error), x.spread() / (v * v), x.common() / v + second,
                        gauge)
      .rounded(Bounded<V>::arithmetic().log, 0);
}
template <class V> Bounded<V> sqrt(const Bounded<V>& x) {
  const V value = sqrt(x.value());
  const double r = static_cast<double>(value), error = x.total(), v = x.magnitude();
  const double down = error < v ? r - std::sqrt(v - error) : r;
  const double slope = r > 0 ? 1 / (2 * r) : 0;
  return Bounded<V>::of(value, std::max(down, std::sqrt(v + error) - r), slope * slope * x.spread(),
                        slope * x.common() + (r > 0 ? x.likely() * x.likely() / (v * r) : 0),
                        std::sqrt(x.gauge()))
      .rounded(Bounded<V>::arithmetic().rsqrt, 0);
}
// Absolute: 1-Lipschitz, and accurate to units of 1.
template <class V, class F> Bounded<V> circular(const Bounded<V>& x, F f, double unit) {
  const double error = std::min(2.0, x.total());
  return Bounded<V>::of(V(f(x.value())), error + unit, x.spread() + unit * unit / 3, x.common(), 1);
}
template <class V> Bounded<V> sin(const Bounded<V>& x) {
  return circular(
      x, [](const V& v) { return sin(v); }, Bounded<V>::arithmetic().sin);
}
template <class V> Bounded<V> cos(const Bounded<V>& x) {
  return circular(
      x, [](const V& v) { return cos(v); }, Bounded<V>::arithmetic().cos);
}
// Of numbers that options alone make: both sides compute the same integers.
template <class V> Bounded<V> floor(const Bounded<V>& x) {
  using std::floor;
  return Bounded<V>::exact(V(floor(x.value())));
}
template <class V> Bounded<V> ceil(const Bounded<V>& x) {
  using std::ceil;
  return Bounded<V>::exact(V(ceil(x.value())));
}

// ---- what operations are written in ------------------------------------------------------------------------------
template <class V> struct FromDouble<Bounded<V>> {
  static Bounded<V> make(double x) { return Bounded<V>(x); }
  // A kernel holds a constant rounded, unless it is one of its numbers.
  static Bounded<V> constant(double x) {
    const Bounded<V> c(x);
    if (!std::isfinite(x) || static_cast<double>(static_cast<float>(x)) == x) return c;
    const double error = std::fabs(x) * Bounded<V>::arithmetic().unit;
    return c.widened(error, error);
  }
};

template <class V> struct Pi<Bounded<V>> {
  static Bounded<V> make() {
    return Bounded<V>::exact(pi<V>()).rounded(Bounded<V>::arithmetic().unit, 0);
  }
};

// max(x, 0): 1-Lipschitz, and 0 for certain where x is surely negative.
template <class V> Bounded<V> relu(const Bounded<V>& x) {
  if (is_nan(x)) return x;
  return larger(x.finished(), Bounded<V>(0), "");
}
template <class V> Bounded<V> larger(const Bounded<V>& x, const Bounded<V>& floor, const char*) {
  if (is_nan(x)) return x;
  const Bounded<V> a = x.finished(), b = floor.finished();
  const double gap = static_cast<double>(V(a.value() - b.value()));
  if (gap > a.total() + b.total()) return a;
  if (-gap > a.total() + b.total()) return b;
  const Bounded<V>& top = gap > 0 ? a : b;
  return Bounded<V>::of(top.value(), std::max(a.total(), b.total()),
                        std::max(a.spread(), b.spread()), std::max(a.common(), b.common()),
                        std::max(a.gauge(), b.gauge()));
}
// The derivative of max(x, floor) by x: either one where an execution may stand on either side.
template <class V> Bounded<V> slope_above(const Bounded<V>& x, const Bounded<V>& floor) {
  if (is_nan(x)) return x;
  const double gap = static_cast<double>(V(x.value() - floor.value()));
  const Bounded<V> slope(gap > 0 ? 1 : 0);
  if (std::fabs(gap) > x.total() + floor.total()) return slope;
  const bool near = std::fabs(gap) <= x.likely() + floor.likely();
  return Bounded<V>::of(slope.value(), 1, 0, near ? 1 : 0, 1);
}
template <class V> Bounded<V> round_at(Point point, const Bounded<V>& x) {
  const Arithmetic& a = Bounded<V>::arithmetic();
  const auto i = static_cast<std::size_t>(point);
  return a.point_unit[i] > 0 ? x.rounded(a.point_unit[i], a.point_least[i]) : x.finished();
}
template <class V> bool is_zero(const Bounded<V>& x) {
  return x.magnitude() == 0 && x.total() == 0;
}
template <class V> Bounded<V> share(Symbol, const Bounded<V>& x) { return x.shared(); }
template <class V> Bounded<V> leave(const Bounded<V>& x) { return x.finished(); }

}  // namespace plumbline

template <class V> class std::numeric_limits<plumbline::Bounded<V>> {
 public:
  static constexpr bool is_specialized = true;
  static plumbline::Bounded<V> infinity() {
    return plumbline::Bounded<V>::exact(std::numeric_limits<V>::infinity());
  }
  static plumbline::Bounded<V> quiet_NaN() {
    return plumbline::Bounded<V>::exact(std::numeric_limits<V>::quiet_NaN());
  }
};
