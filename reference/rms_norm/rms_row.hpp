// reference/rms_norm/rms_row.hpp
//
// One row of a root-mean-square norm, forward and pulled back; rms_norm and every layer that
// normalises use it.
//     y_i = x_i·r·w_i,  r = (mean(x²) + eps)^(−1/2)
// With g = dy·w and n channels, ∂r/∂x_i = −r³·x_i/n gives
//     dx_i = r·g_i − x_i·r³·(Σ_j g_j·x_j)/n,   dw_i = dy_i·x_i·r.
// Errors: a zero row with eps 0, under the name that `where` returns.
#pragma once
#include <cstdint>
#include <span>

#include "reference/error.hpp"
#include "reference/numeric/primitives.hpp"

namespace plumbline {

template <class T> T count_as(std::size_t n) { return constant<T>(static_cast<double>(n)); }

template <class T, class Where> T rms_factor(std::span<const T> x, double eps, const Where& where) {
  const T mean = dot<T>(x, x) / count_as<T>(x.size());
  if (mean == T(0) && eps == 0) {
    throw Error(where(), "zeros only, with eps 0", "a row with another number, or eps > 0");
  }
  return rsqrt(T(mean + constant<T>(eps)));
}

// y may be x. An empty weight is a weight of ones.
template <class T> void rms_scale(std::span<const T> x, const T& factor,
                                  std::span<const Exact<T>> weight, std::span<T> y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T normal = x[i] * factor;
    y[i] = round_at(Point::norm_out, weight.empty() ? normal : T(normal * weight[i]));
  }
}

// Adds to dx and, if there is a weight, to dweight.
template <class T> void rms_pull_back(std::span<const T> x, const T& factor,
                                      std::span<const Exact<T>> weight, std::span<const T> dy,
                                      std::span<T> dx, std::span<T> dweight) {
  const auto g = [&](std::size_t i) { return weight.empty() ? dy[i] : T(dy[i] * weight[i]); };
  T along(0);
  for (std::size_t i = 0; i < x.size(); ++i) along += g(i) * x[i];
  const T back = factor * factor * factor * along / count_as<T>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) dx[i] += factor * g(i) - x[i] * back;
  for (std::size_t i = 0; i < dweight.size(); ++i) dweight[i] += dy[i] * x[i] * factor;
}

}  // namespace plumbline
