// reference/numeric/primitives.hpp
//
// The few things an operation is written in. Here they are for plain numbers; scalars that carry an error
// overload them with rules of their own, and no operation has to know.
// Every sum runs in ascending order of its index, so bits depend on nothing but the inputs.
#pragma once
#include <cstdint>
#include <span>

#include "reference/numeric/contract.hpp"
#include "reference/numeric/decisions.hpp"
#include "reference/numeric/scalar.hpp"

namespace plumbline {

template <class T> T dot(std::span<const T> a, std::span<const T> b) {
  T total(0);
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}
template <class T> T sum(std::span<const T> x) {
  T total(0);
  for (const T& value : x) total += value;
  return total;
}
template <class T> T rsqrt(const T& x) { return T(1) / sqrt(x); }

template <class T> bool step(const T& x) { return decide(x > T(0), "the sign under a ReLU"); }
template <class T> T relu(const T& x) {  // NaN stays NaN
  if (is_nan(x)) return x;
  return step(x) ? x : T(0);
}
template <class T> T larger(const T& x, const T& floor, const char* what) {
  if (is_nan(x)) return x;
  return decide(x > floor, what) ? x : floor;
}

// The derivative of max(x, floor) by x, 0 at the kink. A number, since an execution may stand on either side.
template <class T> T slope_above(const T& x, const T& floor) {
  if (is_nan(x)) return x;
  return x > floor ? T(1) : T(0);
}

// Zero in every execution.
template <class T> bool is_zero(const T& x) { return x == T(0); }

// A constant the kernel holds, an intermediate it may store, a number all of a row uses, and its end.
template <class T> T constant(double x) { return FromDouble<T>::constant(x); }
template <class T> T round_at(Point, T x) { return x; }
template <class T> T share(Symbol, T x) { return x; }
template <class T> T leave(T x) { return x; }

// The natural logarithm under a name that member functions called log do not hide.
template <class T> T natural_log(const T& x) { return log(x); }

// ln Σ exp(x) of numbers that come one at a time or in blocks, with a running maximum, and the normalised weights
// that follow from it: weight(x) = exp(x − max)/Σ and its logarithm (x − max) − ln Σ, never the logarithm of a
// rounded weight. −inf adds nothing. One +inf takes all the mass; two have no limit, and the weights are NaN.
template <class T> class LogSum {
 public:
  struct Step {  // what an addition did: earlier sums times scale, plus term
    T scale, term;
  };
  Step add(const T& x) {
    if (!is_finite(x)) {
      if (is_nan(x)) has_nan_ = true;
      if (x > T(0)) ++infinite_;
      return {T(1), T(0)};
    }
    const T scale = raise(x);
    const T term = exp(T(x - max_));
    sum_ += term;
    return {scale, term};
  }
  // The maximum of the block first, then its sum: over one block that holds everything, the two-pass softmax.
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
    raise(other.max_);
    sum_ += other.sum_ * exp(T(other.max_ - max_));
  }

  bool empty() const { return !any_ && infinite_ == 0 && !has_nan_; }
  T log() const {
    if (has_nan_) return not_a_number<T>();
    if (infinite_ > 0) return infinity<T>();
    if (!any_) return -infinity<T>();
    return max_ + natural_log(sum_);
  }
  T weight(const T& x) const {
    if (has_nan_ || is_nan(x)) return not_a_number<T>();
    if (infinite_ > 0) return x < infinity<T>() ? T(0) : infinite_ == 1 ? T(1) : not_a_number<T>();
    if (!is_finite(x)) return T(0);
    return exp(T(x - max_)) / sum_;
  }
  // The same of logits that were computed again, and of a logarithm that was stored: another error, one number.
  T weight_again(const T& x) const { return weight(x); }
  T log_weight(const T& x) const { return log_weight(x, log_of_sum()); }
  T log_weight(const T& x, const T& log_of_sum) const {
    if (has_nan_ || is_nan(x)) return not_a_number<T>();
    if (infinite_ > 0) {
      return x < infinity<T>() ? T(-infinity<T>()) : infinite_ == 1 ? T(0) : not_a_number<T>();
    }
    if (!is_finite(x)) return -infinity<T>();
    return (x - max_) - log_of_sum;
  }
  const T& scaled_sum() const { return sum_; }                      // Σ exp(x − max)
  T log_of_sum() const { return any_ ? natural_log(sum_) : T(0); }  // and its logarithm

 private:
  T raise(const T& x) {
    if (any_ && !(x > max_)) return T(1);
    const T scale = any_ ? T(exp(T(max_ - x))) : T(0);
    any_ = true;
    max_ = x;
    sum_ *= scale;
    return scale;
  }

  bool any_ = false, has_nan_ = false;
  std::int64_t infinite_ = 0;
  T max_{0}, sum_{0};
};

// Σ exp(x)·a / Σ exp(x) of pairs that come one at a time: the weighted mean of a, with the same running maximum.
template <class T> class LogMean {
 public:
  void add(const T& x, const T& a) {
    const typename LogSum<T>::Step step = mass_.add(x);
    total_ = total_ * step.scale + step.term * a;
  }
  const LogSum<T>& mass() const { return mass_; }
  T mean() const {
    if (mass_.empty()) return T(0);
    return is_finite(mass_.log()) ? T(total_ / mass_.scaled_sum()) : not_a_number<T>();
  }

 private:
  LogSum<T> mass_;
  T total_{0};
};

}  // namespace plumbline
