// reference/numeric/bounded_softmax.hpp
//
// ln Σ exp(x) and the weights that follow from it, with their errors. Numerators and normaliser err together: a weight
// whose own error is large moves the normaliser too, and a sum of weights stays 1.
// With D = Σ exp(x − max) = 1 after scaling, own_j = p_j·[exp(β_j + u(|x_j − max| + β_j))·(1 + ε) − 1] + η the error of a
// numerator, ρ that of the sum in any order, T the rescalings of an online softmax:
//     E = Σ own + ρ + T·ε,   least mass D₀ = Σ p·exp(−b)(1 − ε) − ρ − T·ε
//     a weight for its own sake: [own_j(1 − p_j) + p_j(E − own_j)]/D₀, and never more than max(p, 1 − p)
//     a weight from stored logits and logarithm: p·(exp(β_j + error of ln D + u(|x_j| + |lse|)) − 1)
//     the logarithm: max(−ln D₀, ln(1 + E)) + ε_log·|ln D| + u·|lse|
// Dividing by D₀ and not by 1 − E keeps the bound finite for large β. docs/bounds.md derives this.
// Source: Blanchard, Higham and Higham, IMA J. Numer. Anal. 41, 2021.
#pragma once
#include "reference/numeric/bounded.hpp"

namespace plumbline {

template <class V> class LogSum<Bounded<V>> {
  using T = Bounded<V>;

 public:
  struct Step {
    T scale, term;
  };
  Step add(const T& x) {
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
  void add_block(std::span<const T> x) {
    const T* top = nullptr;
    for (const T& value : x) {
      if (is_finite(value) && (top == nullptr || value > *top)) top = &value;
    }
    if (top != nullptr) raise(*top);
    for (const T& value : x) add(value);
  }
  void add(const LogSum& other) {
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

  bool empty() const { return !any_ && infinite_ == 0 && !has_nan_; }
  T log() const {
    if (has_nan_) return not_a_number<T>();
    if (infinite_ > 0) return infinity<T>();
    if (!any_) return -infinity<T>();
    return log_of(V(max_ + natural_log(sum_)));
  }
  // For its own sake, or multiplied and summed over the row.
  T weight(const T& x) const {
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
  // exp(x − lse) of logits that were computed again, or stored, and of the logarithm as it was stored.
  T weight_again(const T& x) const {
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
  T log_weight(const T& x) const { return log_weight(x, T(0)); }
  T log_weight(const T& x, const T&) const {
    if (has_nan_ || is_nan(x)) return not_a_number<T>();
    if (infinite_ > 0) {
      return x < infinity<T>() ? T(-infinity<T>()) : infinite_ == 1 ? T(0) : not_a_number<T>();
    }
    if (!is_finite(x)) return -infinity<T>();
    const V value = (x.value() - max_) - natural_log(sum_);
    const T lse = log(), w = weight(x);
    const double u = T::arithmetic().unit, p = w.magnitude();
    const double away = u * (x.magnitude() + lse.magnitude() + x.total() + lse.total());
    double error = x.total() + lse.total() + away;
    if (w.total() < p) error = std::min(error, -std::log1p(-w.total() / p) + away);
    double common = x.common() + lse.common() + 6 * std::sqrt(lse.spread()), spread = x.spread();
    if (p > 0 && w.common() + 6 * std::sqrt(w.spread()) < p * (common + 6 * std::sqrt(spread))) {
      common = w.common() / p, spread = w.spread() / (p * p);
    }
    return T::of(value, error, spread + away * away / 3, common + error * error,
                 std::fabs(static_cast<double>(value)) + 1);
  }
  T scaled_sum() const {
    const Normaliser all = normaliser();
    return T::of(sum_, all.up * all.mass, all.spread * square(all.mass), all.common * all.mass,
                 all.mass);
  }
  T log_of_sum() const { return any_ ? log_of(V(natural_log(sum_))) : T(0); }

 private:
  struct Numerator {
    V value;
    double p, own, low, spread, common;
  };
  struct Normaliser {  // relative to the mass
    double mass, up, least, spread, common, rescaled;
  };
  static double square(double x) { return x * x; }

  Numerator numerator(const T& x) const {
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
  Normaliser normaliser() const {
    const Arithmetic& a = T::arithmetic();
    const double mass = static_cast<double>(sum_),
                 tiles = a.tile > 0 ? std::ceil(count_ / static_cast<double>(a.tile)) + 1 : 0;
    const double rescaled = std::expm1(tiles * (a.exp + 2 * a.unit)),
                 added = count_ > 1 || tiles > 0 ? a.sum_error(count_ + 2 * tiles) : 0;
    const double up = own_ / mass;
    return {
        mass,
        up + (1 + up) * (rescaled + added),
        1 - low_ / mass - rescaled - added,
        spread_ / square(mass) + count_ * square(a.sum_error(1)) / 12 + tiles * square(a.exp) / 3,
        common_ / mass,
        rescaled};
  }
  std::optional<T> limit_of(const T& x) const {
    if (has_nan_ || is_nan(x)) return not_a_number<T>();
    if (infinite_ > 0) return x < infinity<T>() ? T(0) : infinite_ == 1 ? T(1) : not_a_number<T>();
    if (!is_finite(x)) return T(0);
    return std::nullopt;
  }
  // ln of the mass, under a value that may have the maximum in it.
  T log_of(const V& value) const {
    const Arithmetic& a = T::arithmetic();
    const Normaliser all = normaliser();
    const double ln = std::fabs(std::log(all.mass)), size = std::fabs(static_cast<double>(value));
    const double up = std::log1p(all.up),
                 error = all.least > 0 ? std::max(up, -std::log(all.least)) : T::unknown();
    return T::of(value, error + a.log * (ln + error) + a.unit * (size + error),
                 all.spread + (square(a.log * ln) + square(a.unit * size)) / 3,
                 all.common + square(all.up), size + 1);
  }
  T raise(const T& x) {
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

  bool any_ = false, has_nan_ = false;
  std::int64_t infinite_ = 0;
  V max_{0}, sum_{0};
  double own_ = 0, low_ = 0, spread_ = 0, common_ = 0, beta_ = 0, count_ = 0;
};

}  // namespace plumbline
