// reference/numeric/bounded.hpp
//
// A number with a certified error: for every execution that a contract allows, the executed number lies within
// total() of the value (tier 1, proven), and where roundings are to nearest within likely() with a margin of six
// standard deviations (tier 2). Operations run in it unchanged.
//   value   of exact arithmetic on the exact inputs
//   own     bound of the error, terms of an unfinished sum apart
//   spread  variance of its independent part
//   row     standard deviation of what the elements of a row have in common (a log-sum-exp, delta, a normaliser): it adds
//           up linearly within the row; leave() closes the row, and from row to row it is independent
//   common  bound of the part that always adds up linearly
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
  static Bounded of(const V& value, double own, double spread, double row, double common,
                    double gauge) {
    Bounded x;
    x.value_ = value, x.own_ = own, x.spread_ = spread, x.row_ = row, x.common_ = common;
    x.gauge_ = gauge;
    return x;
  }
  template <class U> explicit Bounded(const Bounded<U>& x)
      : value_(from_double<V>(static_cast<double>(x.value()))) {
    const Bounded<U> done = x.finished();
    own_ = done.total(), spread_ = done.spread(), row_ = done.row(), common_ = done.common();
    gauge_ = done.gauge();
  }

  const V& value() const { return value_; }
  double magnitude() const { return std::fabs(static_cast<double>(value_)); }
  double gauge() const { return gauge_; }
  bool is_exact() const { return own_ == 0 && terms_ == 0; }
  // Of a finished number; of an unfinished sum the error that its end will have.
  double total() const { return terms_ > 1 ? own_ + rounding() : own_; }
  double spread() const { return terms_ > 1 ? spread_ + rounding_spread() : spread_; }
  double row() const { return row_; }
  double common() const { return common_; }
  double likely() const { return std::min(total(), common_ + 6 * (std::sqrt(spread()) + row_)); }

  Bounded finished() const {
    if (terms_ == 0) return *this;
    return of(value_, total(), spread(), row_, common_, gauge_);
  }

  Bounded& operator+=(const Bounded& x) { return accumulate(x); }
  Bounded& operator-=(const Bounded& x) { return accumulate(-x); }
  Bounded& operator*=(const Bounded& x) { return *this = *this * x; }
  Bounded& operator/=(const Bounded& x) { return *this = *this / x; }

  friend Bounded operator-(const Bounded& x) {
    Bounded r = x;
    r.value_ = -x.value_;
    return r;
  }
  friend Bounded operator+(const Bounded& a, const Bounded& b) { return add(a, b); }
  friend Bounded operator-(const Bounded& a, const Bounded& b) { return add(a, -b); }
  friend Bounded operator*(const Bounded& a, const Bounded& b) { return multiply(a, b); }
  friend Bounded operator/(const Bounded& a, const Bounded& b) { return divide(a, b); }

  friend bool operator==(const Bounded& a, const Bounded& b) { return a.value_ == b.value_; }
  friend bool operator<(const Bounded& a, const Bounded& b) { return a.value_ < b.value_; }
  friend bool operator>(const Bounded& a, const Bounded& b) { return a.value_ > b.value_; }
  friend bool operator<=(const Bounded& a, const Bounded& b) { return a.value_ <= b.value_; }
  friend bool operator>=(const Bounded& a, const Bounded& b) { return a.value_ >= b.value_; }
  explicit operator double() const { return static_cast<double>(value_); }

  // An unfinished sum of products of exact numbers: Σ ab, Σ |ab|, Σ (ab)², how many are not 0.
  static Bounded sum_of(const V& value, double mass, double squares, double count);
  // y += a·x
  static void add_scaled(std::span<Bounded> y, const Bounded& a, std::span<const V> x);
  // += d·Σ ab of such products; d is finished.
  void add_products(const Bounded& d, const V& value, double mass, double squares, double count);

  // One rounding of the result: relative to what may be there, and what underflow costs.
  Bounded rounded(double unit, double least) const;
  // The elements of a row will share it; and it is one of many rows' now.
  Bounded shared() const;
  Bounded left() const;
  Bounded widened(double own, double common) const;
  static const Arithmetic& arithmetic() { return *this_arithmetic(); }
  static double unknown() { return std::numeric_limits<double>::infinity(); }

 private:
  static Bounded add(const Bounded& a, const Bounded& b);
  static Bounded multiply(const Bounded& a, const Bounded& b);
  static Bounded divide(const Bounded& a, const Bounded& b);
  double rounding() const { return arithmetic().sum_error(terms_) * reach_; }
  double rounding_spread() const;
  Bounded& accumulate(const Bounded& x);
  void begin();

  V value_{0};
  double own_ = 0, spread_ = 0, row_ = 0, common_ = 0, gauge_ = 0;
  double terms_ = 0, reach_ = 0, mass_ = 0;  // of an unfinished sum
};

template <class T> struct IsBounded : std::false_type {};
template <class V> struct IsBounded<Bounded<V>> : std::true_type {};

// ---- elementary functions ----------------------------------------------------------------------------------------
template <class V> bool is_nan(const Bounded<V>& x) { return is_nan(x.value()); }
template <class V> bool is_finite(const Bounded<V>& x) { return is_finite(x.value()); }

template <class V> Bounded<V> exp(const Bounded<V>& x);
template <class V> Bounded<V> log(const Bounded<V>& x);
template <class V> Bounded<V> sqrt(const Bounded<V>& x);
template <class V> Bounded<V> sin(const Bounded<V>& x);
template <class V> Bounded<V> cos(const Bounded<V>& x);
template <class V> Bounded<V> expm1(const Bounded<V>& x) { return exp(x) - Bounded<V>(1); }
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
  static Bounded<V> constant(double x);
};

template <class V> struct Pi<Bounded<V>> {
  static Bounded<V> make() {
    return Bounded<V>::exact(pi<V>()).rounded(Bounded<V>::arithmetic().unit, 0);
  }
};

template <class V> Bounded<V> larger(const Bounded<V>& x, const Bounded<V>& floor, const char*);
// The derivative of max(x, floor) by x: either one where an execution may stand on either side.
template <class V> Bounded<V> slope_above(const Bounded<V>& x, const Bounded<V>& floor);
// max(x, 0): 1-Lipschitz, and 0 for certain where x is surely negative.
template <class V> Bounded<V> relu(const Bounded<V>& x) {
  if (is_nan(x)) return x;
  return larger(x.finished(), Bounded<V>(0), "");
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
template <class V> Bounded<V> leave(const Bounded<V>& x) { return x.left(); }

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
