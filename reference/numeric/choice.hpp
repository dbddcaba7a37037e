// reference/numeric/choice.hpp
//
// Two option types that many operations share: a logarithm that may be guarded, and the normalisation of a head
// sum. Each is a mode with at most one parameter; in JSON the bare word or {"mode": …, "eps": …}.
#pragma once
#include <span>
#include <string_view>

#include "reference/numeric/primitives.hpp"

namespace plumbline {

struct Mode {  // one mode of such an option and the name of its parameter ("" = none)
  std::string_view name, parameter;
};

struct Log {
  enum Kind { exact, add, clamp, clip } kind = exact;
  double parameter = 0;  // eps, or lo of clip
  static constexpr Mode modes[] = {{"exact", ""}, {"add", "eps"}, {"clamp", "eps"}, {"clip", "lo"}};
  bool operator==(const Log&) const = default;
};

struct Normalisation {
  enum Kind { none, add, clamp, zero_below } kind = none;
  double parameter = 0;
  static constexpr Mode modes[] = {
      {"none", ""}, {"add", "eps"}, {"clamp", "eps"}, {"zero_below", "eps"}};
  bool operator==(const Normalisation&) const = default;
};

// The guarded logarithm of x, whose exact logarithm is known: ln x | ln(x + eps) | ln max(x, eps) | max(ln x, lo).
template <class T> T guarded_log(const Log& log, const T& x, const T& log_x) {
  switch (log.kind) {
    case Log::exact: return log_x;
    case Log::add: return natural_log(T(x + constant<T>(log.parameter)));
    case Log::clamp:
      return natural_log(larger(x, constant<T>(log.parameter), "the clamp of a logarithm"));
    case Log::clip: return larger(log_x, constant<T>(log.parameter), "the clip of a logarithm");
  }
  return log_x;
}

// d guarded_log / d ln x.
template <class T> T guarded_log_slope(const Log& log, const T& x, const T& log_x) {
  switch (log.kind) {
    case Log::exact: return T(1);
    case Log::add: return x / (x + constant<T>(log.parameter));
    case Log::clamp: return slope_above(x, constant<T>(log.parameter));
    case Log::clip: return slope_above(log_x, constant<T>(log.parameter));
  }
  return T(1);
}

// ln of a head sum's total over what it is divided by, ΣT | ΣT + eps | max(ΣT, eps), from ln ΣT.
template <class T> T log_of_share(const Normalisation& l1, const T& log_total) {
  if (is_nan(log_total)) return log_total;
  const T eps = constant<T>(l1.parameter);
  const bool guarded = l1.kind == Normalisation::add || l1.kind == Normalisation::clamp;
  if (!guarded || !(eps > T(0)) || !is_finite(log_total)) return T(0);
  const T log_eps = natural_log(eps);
  if (l1.kind == Normalisation::clamp)
    return -larger(T(log_eps - log_total), T(0), "the clamp of a head sum");
  // −ln(1 + eps/ΣT), from the smaller of the two.
  const T gap = log_eps - log_total;
  if (gap > T(0)) return -gap - natural_log(T(T(1) + exp(T(-gap))));
  return -natural_log(T(T(1) + exp(gap)));
}

// The row is dropped: its head sum is exactly zero, or at most eps under zero_below.
template <class T> bool vanishes(const Normalisation& l1, const T& log_total) {
  if (log_total == -infinity<T>()) return true;
  if (l1.kind != Normalisation::zero_below || is_nan(log_total)) return false;
  const T eps = constant<T>(l1.parameter);
  return eps > T(0) && log_total <= natural_log(eps);
}

// The same of a sum that is at hand.
template <class T> bool sum_vanishes(const Normalisation& l1, const T& total) {
  if (total == T(0)) return true;
  return l1.kind == Normalisation::zero_below && total <= constant<T>(l1.parameter);
}

}  // namespace plumbline
