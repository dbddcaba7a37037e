#include "reference/numeric/bounded_softmax.hpp"

#include "reference/numeric/bounded_sums.hpp"

namespace plumbline {

template <class V> typename LogSum<Bounded<V>>::Step LogSum<Bounded<V>>::add(const T& x) {
  if (!is_finite(x)) {
    if (is_nan(x)) has_nan_ = true;
    if (x > T(0)) ++infinite_;
    return {T(1), T(0)};
  }
  const T scale = raise(x);
  const Numerator one = numerator(x);
  sum_ += one.value;
  own_ += one.own, low_ += one.low, spread_ += one.spread, row_ += one.row, common_ += one.common;
  count_ += 1;
  whole_.reset();
  return {scale, T::of(one.value, one.own, one.spread, one.row, one.common, one.p)};
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
  own_ += scaled.own_, low_ += scaled.low_, spread_ += scaled.spread_, row_ += scaled.row_;
  common_ += scaled.common_;
  count_ += scaled.count_;
  whole_.reset();
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log() const {
  if (has_nan_) return not_a_number<T>();
  if (infinite_ > 0) return infinity<T>();
  if (!any_) return -infinity<T>();
  return whole().log;
}
template <class V> Bounded<V> LogSum<Bounded<V>>::weight(const T& x) const {
  if (const std::optional<T> limit = limit_of(x)) return *limit;
  const Numerator one = numerator(x);
  const Normaliser& all = whole().normaliser;
  const double p = one.p / all.mass,
               own = one.own / all.mass * (1 + all.rescaled) + p * all.rescaled,
               spread = one.spread / square(all.mass);
  const double spared = own * (1 - p) + p * std::max(all.up - own, 0.0);
  double error = all.least > 0 ? spared / all.least : T::unknown();
  error = std::min(error, std::max(p, 1 - p) * (1 + 8 * T::arithmetic().unit));
  const double others = std::max(all.spread - spread, 0.0);
  return T::of(V(one.value / sum_), error, spread * square(1 - p),
               one.row / all.mass * (1 - p) + p * (all.row + std::sqrt(others)),
               one.common / all.mass * (1 - p) + p * all.common, p)
      .rounded(T::arithmetic().division, T::arithmetic().least);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::weight_again(const T& x) const {
  if (const std::optional<T> limit = limit_of(x)) return *limit;
  const T w = weight(x);
  const T& lse = whole().log;
  const double p = w.magnitude(), u = T::arithmetic().unit;
  const double away = u * (x.magnitude() + lse.magnitude() + x.total() + lse.total());
  const double error = x.total() + lse.total() + away, likely = x.likely() + lse.likely() + away;
  const T again = T::of(w.value(), p * growth(error), p * p * x.spread() + p * p * away * away / 3,
                        p * (x.row() + lse.row() + std::sqrt(lse.spread())),
                        p * (x.common() + lse.common() + growth(likely) - likely), p)
                      .rounded(T::arithmetic().exp, T::arithmetic().least);
  return again.total() > w.total() ? again : w;
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log_weight(const T& x) const {
  if (has_nan_ || is_nan(x)) return not_a_number<T>();
  if (infinite_ > 0) {
    return x < infinity<T>() ? T(-infinity<T>()) : infinite_ == 1 ? T(0) : not_a_number<T>();
  }
  if (!is_finite(x)) return -infinity<T>();
  // A logit may have been computed again since it entered the sum, so nothing cancels; ln Σ has an error of its own.
  const Whole& all = whole();
  const T& lse = all.log;
  const V value = (x.value() - max_) - all.log_of_sum;
  const double away =
      T::arithmetic().unit * (x.magnitude() + lse.magnitude() + x.total() + lse.total()) +
      T::arithmetic().log * std::fabs(static_cast<double>(all.log_of_sum));
  return T::of(value, x.total() + lse.total() + away, x.spread() + away * away / 3,
               x.row() + lse.row() + std::sqrt(lse.spread()), x.common() + lse.common(),
               std::fabs(static_cast<double>(value)) + 1);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::scaled_sum() const {
  const Normaliser& all = whole().normaliser;
  return T::of(sum_, all.up * all.mass, all.spread * square(all.mass), all.row * all.mass,
               all.common * all.mass, all.mass);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::log_of_sum() const {
  return any_ ? log_of(whole().normaliser, whole().log_of_sum) : T(0);
}
template <class V>
typename LogSum<Bounded<V>>::Numerator LogSum<Bounded<V>>::numerator(const T& x) const {
  const Arithmetic& a = T::arithmetic();
  const V shifted = x.value() - max_, value = exp(shifted);
  const double p = static_cast<double>(value), away = std::fabs(static_cast<double>(shifted)),
               b = x.total(), reach = b + a.unit * (away + b + beta_), q = x.likely(),
               grown = growth(reach);
  return {value,
          p,
          p * (grown + a.exp * (1 + grown)) + 2 * a.least,
          std::min(p, p * (reach < 0x1p-10 ? reach + a.exp : 1 - std::exp(-reach) * (1 - a.exp)) +
                          2 * a.least),
          p * p * (x.spread() + (square(a.unit * away) + square(a.exp)) / 3),
          p * x.row(),
          p * (x.common() + growth(q) - q) + 2 * a.least};
}
template <class V> const typename LogSum<Bounded<V>>::Whole& LogSum<Bounded<V>>::whole() const {
  if (whole_) return *whole_;
  const Arithmetic& a = T::arithmetic();
  const double mass = static_cast<double>(sum_),
               tiles = a.tile > 0 ? std::ceil(count_ / static_cast<double>(a.tile)) + 1 : 0;
  const double rescaled = std::expm1(tiles * (a.exp + 2 * a.unit)),
               added = count_ > 1 || tiles > 0 ? a.sum_error(count_ + 2 * tiles) : 0;
  const double up = own_ / mass;
  const Normaliser all{
      mass,
      up + (1 + up) * (rescaled + added),
      1 - low_ / mass - rescaled - added,
      spread_ / square(mass) + count_ * square(a.sum_error(1)) / 12 + tiles * square(a.exp) / 3,
      row_ / mass,
      common_ / mass,
      rescaled};
  const V ln = natural_log(sum_);
  whole_ = Whole{all, ln, log_of(all, V(max_ + ln))};
  return *whole_;
}
template <class V> std::optional<Bounded<V>> LogSum<Bounded<V>>::limit_of(const T& x) const {
  if (has_nan_ || is_nan(x)) return not_a_number<T>();
  if (infinite_ > 0) return x < infinity<T>() ? T(0) : infinite_ == 1 ? T(1) : not_a_number<T>();
  if (!is_finite(x)) return T(0);
  return std::nullopt;
}
template <class V>
Bounded<V> LogSum<Bounded<V>>::log_of(const Normaliser& all, const V& value) const {
  const Arithmetic& a = T::arithmetic();
  const double ln = std::fabs(std::log(all.mass)), size = std::fabs(static_cast<double>(value));
  const double up = std::log1p(all.up),
               error = all.least > 0 ? std::max(up, -std::log(all.least)) : T::unknown(),
               likely = std::min(all.up, all.common + 6 * (std::sqrt(all.spread) + all.row));
  return T::of(value, error + a.log * (ln + error) + a.unit * (size + error),
               all.spread + (square(a.log * ln) + square(a.unit * size)) / 3, all.row,
               all.common + square(likely), size + 1);
}
template <class V> Bounded<V> LogSum<Bounded<V>>::raise(const T& x) {
  beta_ = std::max(beta_, x.total());
  whole_.reset();
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
  row_ *= by, common_ *= by;
  sum_ *= scale;
  max_ = x.value();
  return T::of(scale, by * T::arithmetic().exp, square(by * T::arithmetic().exp) / 3, 0, 0, by);
}

template class LogSum<Bounded<f64>>;
template class LogSum<Bounded<f192>>;

}  // namespace plumbline
