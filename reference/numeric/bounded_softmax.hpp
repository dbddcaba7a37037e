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
#include <optional>

#include "reference/numeric/bounded.hpp"

namespace plumbline {

template <class V> class LogSum<Bounded<V>> {
  using T = Bounded<V>;

 public:
  struct Step {
    T scale, term;
  };
  Step add(const T& x);
  void add_block(std::span<const T> x);
  void add(const LogSum& other);

  bool empty() const { return !any_ && infinite_ == 0 && !has_nan_; }
  T log() const;
  T weight(const T& x) const;        // for its own sake, or multiplied and summed over the row
  T weight_again(const T& x) const;  // exp(x − lse) of logits computed again and a stored logarithm
  T log_weight(const T& x) const;
  T log_weight(const T& x, const T&) const { return log_weight(x); }
  T scaled_sum() const;
  T log_of_sum() const;

 private:
  struct Numerator {
    V value;
    double p, own, low, spread, row, common;
  };
  struct Normaliser {  // relative to the mass
    double mass, up, least, spread, row, common, rescaled;
  };
  struct Whole {  // of the sum as it stands
    Normaliser normaliser;
    V log_of_sum;
    T log;
  };
  Numerator numerator(const T& x) const;
  const Whole& whole() const;
  std::optional<T> limit_of(const T& x) const;
  // ln of the mass, under a value that may have the maximum in it.
  T log_of(const Normaliser& all, const V& value) const;
  T raise(const T& x);

  bool any_ = false, has_nan_ = false;
  std::int64_t infinite_ = 0;
  V max_{0}, sum_{0};
  double own_ = 0, low_ = 0, spread_ = 0, row_ = 0, common_ = 0, beta_ = 0, count_ = 0;
  mutable std::optional<Whole> whole_;
};

}  // namespace plumbline
