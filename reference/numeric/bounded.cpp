#include "reference/numeric/bounded_softmax.hpp"

namespace plumbline {
namespace {

// 0·∞ is 0: what has no weight has no error.
double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

}  // namespace

template <class V> Bounded<V> Bounded<V>::add(const Bounded& a, const Bounded& b) {
  return of(V(a.value_ + b.value_), a.total() + b.total(), a.spread() + b.spread(),
            a.common_ + b.common_, a.gauge_ + b.gauge_)
      .rounded(arithmetic().unit, 0);
}
template <class V> Bounded<V> Bounded<V>::multiply(const Bounded& a, const Bounded& b) {
  const double x = a.magnitude(), y = b.magnitude(), ea = a.total(), eb = b.total();
  double common = times(x, b.common_) + times(y, a.common_);
  if (a.common_ > 0 || b.common_ > 0)
    common += std::min(times(ea, eb), times(a.likely(), b.likely()));
  return of(V(a.value_ * b.value_), times(x, eb) + times(y, ea) + times(ea, eb),
            times(x * x, b.spread()) + times(y * y, a.spread()), common, a.gauge_ * b.gauge_)
      .rounded(arithmetic().unit, arithmetic().least);
}
template <class V> Bounded<V> Bounded<V>::divide(const Bounded& a, const Bounded& b) {
  const double y = b.magnitude(), eb = b.total(), least = y - eb;
  const V value = a.value_ / b.value_;
  const double q = std::fabs(static_cast<double>(value));
  if (!(least > 0)) {
    const bool nothing = a.magnitude() == 0 && a.total() == 0;
    return of(value, nothing ? 0 : unknown(), 0, nothing ? 0 : unknown(), a.gauge_ / y);
  }
  return of(value, (a.total() + times(q, eb)) / least, (a.spread() + q * q * b.spread()) / (y * y),
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
  r.common_ += 6 * std::sqrt(r.spread_);
  r.spread_ = 0;
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
  common_ += x.common_;
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
  const double v = static_cast<double>(value), error = x.total(), likely = x.likely();
  const Arithmetic& a = Bounded<V>::arithmetic();
  if (!std::isfinite(v)) return Bounded<V>::exact(value);
  return Bounded<V>::of(value, v == 0 ? 0 : v * std::expm1(error), v * v * x.spread(),
                        v * (x.common() + (std::expm1(likely) - likely)), v)
      .rounded(a.exp, a.least);
}
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
                        std::max(a.spread(), b.spread()), std::max(a.common(), b.common()),
                        std::max(a.gauge(), b.gauge()));
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
  return Bounded<V>::of(slope.value(), 1, 0, near ? 1 : 0, 1);
}

// ---- softmax ----------------------------------------------------------------------------------------------------
namespace {
double square(double x) { return x * x; }
}  // namespace

template <class V> typename LogSum<Bounded<V>>::Step LogSum<Bounded<V>>::add(const T& x) {
  if (!is_finite(x)) {
    if (is_nan(x)) has_nan_ = true;
    if (x > T(0)) ++infinite_;
    return {T(1), T(0)};
  }
  const T scale = raise(x);
  const Numerator one = numerator(x);
  sum_ += one.value;
  own_ += one.own, low_ += one.low, spread_ += one.spread, common_ += one.common;
  count_ += 1;
  return {scale, T::of(one.value, one.own, one.spread, one.common, one.p)};
}
template <class V> void LogSum<Bounded<V>>::add_block(std::span<const T> x) {
  const T* top = nullptr;
  for (const T& value : x) {
    if (is_finite(value) && (top == nullptr || value > *top)) top = &value;
  }
  if (top != nullptr) raise(*top);
  for (const T& value : x) add(value);
}
template <class V> void LogSum<Bounded<V>>::add(const LogSum& other) {
  has_nan_ |= other.has_nan_;
  infinite_ += other.infinite_;
  if (!other.any_) return;
  raise(T::exact(other.max_));
  LogSum scaled = other;
  scaled.raise(T::exact(max_));
  sum_ += scaled.sum_;
  own_ += scaled.own_, low_ += scaled.low_, spread_ += scaled.spread_, common_ += scaled.common_;
  count_ += scaled.count_;
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log() const {
  if (has_nan_) return not_a_number<T>();
  if (infinite_ > 0) return infinity<T>();
  if (!any_) return -infinity<T>();
  return log_of(V(max_ + natural_log(sum_)));
}
template <class V> Bounded<V> LogSum<Bounded<V>>::weight(const T& x) const {
  if (const std::optional<T> limit = limit_of(x)) return *limit;
  const Numerator one = numerator(x);
  const Normaliser all = normaliser();
  const double p = one.p / all.mass,
               own = one.own / all.mass * (1 + all.rescaled) + p * all.rescaled,
               spread = one.spread / square(all.mass);
  const double spared = own * (1 - p) + p * std::max(all.up - own, 0.0);
  double error = all.least > 0 ? spared / all.least : T::unknown();
  error = std::min(error, std::max(p, 1 - p) * (1 + 8 * T::arithmetic().unit));
  const double others = std::max(all.spread - spread, 0.0);
  return T::of(V(one.value / sum_), error, spread * square(1 - p),
               one.common / all.mass * (1 - p) + p * all.common + p * 6 * std::sqrt(others), p)
      .rounded(T::arithmetic().division, T::arithmetic().least);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::weight_again(const T& x) const {
  if (const std::optional<T> limit = limit_of(x)) return *limit;
  const T lse = log(), w = weight(x);
  const double p = w.magnitude(), u = T::arithmetic().unit;
  const double away = u * (x.magnitude() + lse.magnitude() + x.total() + lse.total());
  const double error = x.total() + lse.total() + away, likely = x.likely() + lse.likely() + away;
  const T again =
      T::of(w.value(), p * std::expm1(error), p * p * x.spread() + p * p * away * away / 3,
            p * (x.common() + lse.common() + 6 * std::sqrt(lse.spread()) + std::expm1(likely) -
                 likely),
            p)
          .rounded(T::arithmetic().exp, T::arithmetic().least);
  return again.total() > w.total() ? again : w;
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log_weight(const T& x) const {
  if (has_nan_ || is_nan(x)) return not_a_number<T>();
  if (infinite_ > 0) {
    return x < infinity<T>() ? T(-infinity<T>()) : infinite_ == 1 ? T(0) : not_a_number<T>();
  }
  if (!is_finite(x)) return -infinity<T>();
  const V value = (x.value() - max_) - natural_log(sum_);
  // A logit may have been computed again since it entered the sum, so nothing cancels; ln Σ has an error of its own.
  const T lse = log();
  const double away =
      T::arithmetic().unit * (x.magnitude() + lse.magnitude() + x.total() + lse.total()) +
      T::arithmetic().log * std::fabs(std::log(normaliser().mass));
  const double error = x.total() + lse.total() + away;
  return T::of(value, error, x.spread() + away * away / 3,
               x.common() + lse.common() + 6 * std::sqrt(lse.spread()) + error * error,
               std::fabs(static_cast<double>(value)) + 1);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::scaled_sum() const {
  const Normaliser all = normaliser();
  return T::of(sum_, all.up * all.mass, all.spread * square(all.mass), all.common * all.mass,
               all.mass);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log_of_sum() const {
  return any_ ? log_of(V(natural_log(sum_))) : T(0);
}
template <class V>
typename LogSum<Bounded<V>>::Numerator LogSum<Bounded<V>>::numerator(const T& x) const {
  const Arithmetic& a = T::arithmetic();
  const V shifted = x.value() - max_, value = exp(shifted);
  const double p = static_cast<double>(value), away = std::fabs(static_cast<double>(shifted)),
               b = x.total(), reach = b + a.unit * (away + b + beta_), q = x.likely();
  return {value,
          p,
          p * (std::exp(reach) * (1 + a.exp) - 1) + 2 * a.least,
          std::min(p, p * (1 - std::exp(-reach) * (1 - a.exp)) + 2 * a.least),
          p * p * (x.spread() + (square(a.unit * away) + square(a.exp)) / 3),
          p * (x.common() + std::expm1(q) - q) + 2 * a.least};
}
template <class V> typename LogSum<Bounded<V>>::Normaliser LogSum<Bounded<V>>::normaliser() const {
  const Arithmetic& a = T::arithmetic();
  const double mass = static_cast<double>(sum_),
               tiles = a.tile > 0 ? std::ceil(count_ / static_cast<double>(a.tile)) + 1 : 0;
  const double rescaled = std::expm1(tiles * (a.exp + 2 * a.unit)),
               added = count_ > 1 || tiles > 0 ? a.sum_error(count_ + 2 * tiles) : 0;
  const double up = own_ / mass;
  return {mass,
          up + (1 + up) * (rescaled + added),
          1 - low_ / mass - rescaled - added,
          spread_ / square(mass) + count_ * square(a.sum_error(1)) / 12 + tiles * square(a.exp) / 3,
          common_ / mass,
          rescaled};
}
template <class V> std::optional<Bounded<V>> LogSum<Bounded<V>>::limit_of(const T& x) const {
  if (has_nan_ || is_nan(x)) return not_a_number<T>();
  if (infinite_ > 0) return x < infinity<T>() ? T(0) : infinite_ == 1 ? T(1) : not_a_number<T>();
  if (!is_finite(x)) return T(0);
  return std::nullopt;
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log_of(const V& value) const {
  const Arithmetic& a = T::arithmetic();
  const Normaliser all = normaliser();
  const double ln = std::fabs(std::log(all.mass)), size = std::fabs(static_cast<double>(value));
  const double up = std::log1p(all.up),
               error = all.least > 0 ? std::max(up, -std::log(all.least)) : T::unknown();
  return T::of(value, error + a.log * (ln + error) + a.unit * (size + error),
               all.spread + (square(a.log * ln) + square(a.unit * size)) / 3,
               all.common + square(all.up), size + 1);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::raise(const T& x) {
  beta_ = std::max(beta_, x.total());
  if (any_ && !(x.value() > max_)) return T(1);
  if (!any_) {
    any_ = true;
    max_ = x.value();
    return T(0);
  }
  const V scale = exp(V(max_ - x.value()));
  const double by = static_cast<double>(scale),
               moved = T::arithmetic().unit * std::fabs(static_cast<double>(V(max_ - x.value()))),
               mass = static_cast<double>(sum_);
  own_ = (own_ + (mass + own_) * std::expm1(moved)) * by;
  low_ = std::min(mass, low_ + mass * moved) * by;
  spread_ = (spread_ + square(mass * moved) / 3) * by * by;
  common_ *= by;
  sum_ *= scale;
  max_ = x.value();
  return T::of(scale, by * T::arithmetic().exp, square(by * T::arithmetic().exp) / 3, 0, by);
}

template class Bounded<f64>;
template class Bounded<f192>;
template class LogSum<Bounded<f64>>;
template class LogSum<Bounded<f192>>;
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
