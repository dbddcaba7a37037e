#include "reference/numeric/bounded.hpp"

#include "reference/numeric/bounded_sums.hpp"

namespace plumbline {

template <class V> Bounded<V> Bounded<V>::add(const Bounded& a, const Bounded& b) {
  return of(V(a.value_ + b.value_), a.total() + b.total(), a.spread() + b.spread(), a.row_ + b.row_,
            a.common_ + b.common_, a.gauge_ + b.gauge_)
      .rounded(arithmetic().unit, 0);
}
template <class V> Bounded<V> Bounded<V>::multiply(const Bounded& a, const Bounded& b) {
  const double x = a.magnitude(), y = b.magnitude();
  // A factor of 1 is no operation that could round.
  if ((x == 1 && a.is_exact()) || (y == 1 && b.is_exact())) {
    Bounded product = x == 1 && a.is_exact() ? b.finished() : a.finished();
    product.value_ = a.value_ * b.value_;
    return product;
  }
  const double ea = a.total(), eb = b.total();
  double common = times(x, b.common_) + times(y, a.common_);
  if (ea > 0 && eb > 0) common += std::min(times(ea, eb), times(a.likely(), b.likely()));
  return of(V(a.value_ * b.value_), times(x, eb) + times(y, ea) + times(ea, eb),
            times(x * x, b.spread()) + times(y * y, a.spread()),
            times(x, b.row_) + times(y, a.row_), common, a.gauge_ * b.gauge_)
      .rounded(arithmetic().unit, arithmetic().least);
}
template <class V> Bounded<V> Bounded<V>::divide(const Bounded& a, const Bounded& b) {
  const double y = b.magnitude(), eb = b.total(), least = y - eb;
  const V value = a.value_ / b.value_;
  const double q = std::fabs(static_cast<double>(value));
  if (!(least > 0)) {
    const bool nothing = a.magnitude() == 0 && a.total() == 0;
    return of(value, nothing ? 0 : unknown(), 0, 0, nothing ? 0 : unknown(), a.gauge_ / y);
  }
  return of(value, (a.total() + times(q, eb)) / least, (a.spread() + q * q * b.spread()) / (y * y),
            (a.row_ + q * b.row_) / y,
            (a.common_ + q * b.common_) / y + (a.likely() + q * b.likely()) / y * eb / least,
            a.gauge_ / y)
      .rounded(std::max(arithmetic().division, arithmetic().unit), arithmetic().least);
}
template <class V> Bounded<V> Bounded<V>::rounded(double unit, double least) const {
  Bounded r = finished();
  const double v = r.magnitude();
  if (v == 0 && r.own_ == 0) least = 0;  // an exact zero stays one
  r.spread_ += unit * unit * v * v / 3;
  r.common_ += least + unit * std::min(r.own_, r.likely());
  r.own_ += unit * (v + r.own_) + least;
  return r;
}
template <class V> Bounded<V> Bounded<V>::shared() const {
  Bounded r = finished();
  r.row_ += std::sqrt(r.spread_);
  r.spread_ = 0;
  return r;
}
template <class V> Bounded<V> Bounded<V>::left() const {
  Bounded r = finished();
  if (r.row_ > 0) {
    const double deviation = std::sqrt(r.spread_) + r.row_;
    r.spread_ = deviation * deviation;
    r.row_ = 0;
  }
  return r;
}
template <class V> Bounded<V> Bounded<V>::widened(double own, double common) const {
  Bounded r = finished();
  r.own_ += own, r.common_ += common;
  return r;
}
template <class V> double Bounded<V>::rounding_spread() const {
  const double half = (mass_ + magnitude()) / 2, u = arithmetic().sum_error(1) / 2;
  return terms_ * half * half * u * u / 3;
}
template <class V> Bounded<V>& Bounded<V>::accumulate(const Bounded& x) {
  if (terms_ == 0) begin();
  own_ += x.own_, spread_ += x.spread_;
  if (x.terms_ > 0) {  // a part of the sum, whose terms may be added in any order with ours
    terms_ += x.terms_, reach_ += x.reach_, mass_ += x.mass_;
  } else if (!(x.magnitude() == 0 && x.own_ == 0)) {
    terms_ += 1, reach_ += x.magnitude() + x.own_, mass_ += x.magnitude();
  }
  row_ += x.row_, common_ += x.common_;
  gauge_ += x.gauge_;
  value_ += x.value_;
  return *this;
}
template <class V> void Bounded<V>::begin() {
  if (magnitude() == 0 && own_ == 0) return;
  terms_ = 1, reach_ = magnitude() + own_, mass_ = magnitude();
}

template <class V> Bounded<V> exp(const Bounded<V>& x) {
  const V value = exp(x.value());
  const double v = static_cast<double>(value), likely = x.likely();
  const Arithmetic& a = Bounded<V>::arithmetic();
  if (!std::isfinite(v)) return Bounded<V>::exact(value);
  return Bounded<V>::of(value, v == 0 ? 0 : v * growth(x.total()), v * v * x.spread(), v * x.row(),
                        v * (x.common() + (growth(likely) - likely)), v)
      .rounded(a.exp, a.least);
}
template <class V> Bounded<V> log(const Bounded<V>& x) {
  const V value = log(x.value());
  const double v = x.magnitude(), error = x.total() / v, likely = x.likely() / v;
  const double gauge = std::fabs(static_cast<double>(value)) + 1;
  if (!(v > 0))
    return Bounded<V>::of(value, x.total() > 0 ? Bounded<V>::unknown() : 0, 0, 0, 0, gauge);
  if (!(error < 1))
    return Bounded<V>::of(value, Bounded<V>::unknown(), 0, 0, Bounded<V>::unknown(), gauge);
  const double second = likely < 1 ? -std::log1p(-likely) - likely : 0;
  return Bounded<V>::of(value, -std::log1p(-error), x.spread() / (v * v), x.row() / v,
                        x.common() / v + second, gauge)
      .rounded(Bounded<V>::arithmetic().log, 0);
}
template <class V> Bounded<V> sqrt(const Bounded<V>& x) {
  const V value = sqrt(x.value());
  const double r = static_cast<double>(value), error = x.total(), v = x.magnitude();
  const double down = error < v ? r - std::sqrt(v - error) : r;
  const double slope = r > 0 ? 1 / (2 * r) : 0;
  return Bounded<V>::of(value, std::max(down, std::sqrt(v + error) - r), slope * slope * x.spread(),
                        slope * x.row(),
                        slope * x.common() + (r > 0 ? x.likely() * x.likely() / (v * r) : 0),
                        std::sqrt(x.gauge()))
      .rounded(Bounded<V>::arithmetic().rsqrt, 0);
}
// Absolute: 1-Lipschitz, and accurate to units of 1.
template <class V, class F> Bounded<V> circular(const Bounded<V>& x, F f, double unit) {
  const double error = std::min(2.0, x.total());
  return Bounded<V>::of(V(f(x.value())), error + unit, x.spread() + unit * unit / 3, x.row(),
                        x.common(), 1);
}
template <class V> Bounded<V> sin(const Bounded<V>& x) {
  return circular(
      x, [](const V& v) { return sin(v); }, Bounded<V>::arithmetic().sin);
}
template <class V> Bounded<V> cos(const Bounded<V>& x) {
  return circular(
      x, [](const V& v) { return cos(v); }, Bounded<V>::arithmetic().cos);
}

template <class V> Bounded<V> FromDouble<Bounded<V>>::constant(double x) {
  const Bounded<V> c(x);
  if (!std::isfinite(x) || static_cast<double>(static_cast<float>(x)) == x) return c;
  const double error = std::fabs(x) * Bounded<V>::arithmetic().unit;
  return c.widened(error, error);
}
template <class V> Bounded<V> larger(const Bounded<V>& x, const Bounded<V>& floor, const char*) {
  if (is_nan(x)) return x;
  const Bounded<V> a = x.finished(), b = floor.finished();
  const double gap = static_cast<double>(V(a.value() - b.value()));
  if (gap > a.total() + b.total()) return a;
  if (-gap > a.total() + b.total()) return b;
  const Bounded<V>& top = gap > 0 ? a : b;
  return Bounded<V>::of(top.value(), std::max(a.total(), b.total()),
                        std::max(a.spread(), b.spread()), std::max(a.row(), b.row()),
                        std::max(a.common(), b.common()), std::max(a.gauge(), b.gauge()));
}
// The derivative of max(x, floor) by x: either one where an execution may stand on either side.
template <class V> Bounded<V> slope_above(const Bounded<V>& x, const Bounded<V>& floor) {
  if (is_nan(x)) return x;
  const double gap = static_cast<double>(V(x.value() - floor.value()));
  const Bounded<V> slope(gap > 0 ? 1 : 0);
  const double error = x.total() + floor.total();
  if (std::fabs(gap) > error || error == 0)
    return slope;  // an exact tie has its defined derivative
  const bool near = std::fabs(gap) <= x.likely() + floor.likely();
  return Bounded<V>::of(slope.value(), 1, 0, 0, near ? 1 : 0, 1);
}

template class Bounded<f64>;
template class Bounded<f192>;
#define INSTANTIATE(V)                                                           \
  template struct FromDouble<Bounded<V>>;                                        \
  template Bounded<V> exp(const Bounded<V>&);                                    \
  template Bounded<V> log(const Bounded<V>&);                                    \
  template Bounded<V> sqrt(const Bounded<V>&);                                   \
  template Bounded<V> sin(const Bounded<V>&);                                    \
  template Bounded<V> cos(const Bounded<V>&);                                    \
  template Bounded<V> larger(const Bounded<V>&, const Bounded<V>&, const char*); \
  template Bounded<V> slope_above(const Bounded<V>&, const Bounded<V>&);
INSTANTIATE(f64)
INSTANTIATE(f192)

}  // namespace plumbline
