// reference/layer_norm/layer_row.hpp
//
// One row of a layer norm, forward and pulled back; layer_norm and the V3.2 indexer's keys use it.
//     y_i = n_i·w_i + c_i,  n_i = (x_i − μ)·r,  r = (var + eps)^(−1/2)
// With g = dy·w, and since Σ n = 0,
//     dx_i = r·(g_i − mean(g) − n_i·mean(g·n)),   dw_i = dy_i·n_i,   dc_i = dy_i.
// Errors: a constant row with eps 0, under the name that `where` returns.
#pragma once
#include <cstdint>
#include <span>

#include "reference/error.hpp"
#include "reference/rms_norm/rms_row.hpp"

namespace plumbline {

template <class T> class LayerMoments {
 public:
  template <class Where> LayerMoments(std::span<const T> x, double eps, const Where& where) {
    const T count = count_as<T>(x.size());
    bool constant_row =
        true;  // its mean rounds, so that the deviations of equal numbers need not be 0
    for (const T& value : x) constant_row = constant_row && value == x[0];
    mean_ = constant_row ? x[0] : T(sum<T>(x) / count);
    T variance(0);
    for (const T& value : x) variance += (value - mean_) * (value - mean_);
    variance /= count;
    if (variance == T(0) && eps == 0) {
      throw Error(where(), "equal numbers only, with eps 0", "a row that varies, or eps > 0");
    }
    factor_ = rsqrt(T(variance + constant<T>(eps)));
  }

  // y may be x. An empty weight is one of ones, an empty bias one of zeros.
  void scale(std::span<const T> x, std::span<const Exact<T>> weight, std::span<const Exact<T>> bias,
             std::span<T> y) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      T value = normal(x[i]);
      if (!weight.empty()) value *= weight[i];
      if (!bias.empty()) value += bias[i];
      y[i] = round_at(Point::norm_out, value);
    }
  }
  // Adds to dx, and to dweight and dbias unless they are empty.
  void pull_back(std::span<const T> x, std::span<const Exact<T>> weight, std::span<const T> dy,
                 std::span<T> dx, std::span<T> dweight, std::span<T> dbias) const {
    const auto g = [&](std::size_t i) { return weight.empty() ? dy[i] : T(dy[i] * weight[i]); };
    T mean_g(0), mean_gn(0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      mean_g += g(i);
      mean_gn += g(i) * normal(x[i]);
    }
    mean_g /= count_as<T>(x.size());
    mean_gn /= count_as<T>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      dx[i] += factor_ * (g(i) - mean_g - normal(x[i]) * mean_gn);
    for (std::size_t i = 0; i < dweight.size(); ++i) dweight[i] += dy[i] * normal(x[i]);
    for (std::size_t i = 0; i < dbias.size(); ++i) dbias[i] += dy[i];
  }

 private:
  T normal(const T& x) const { return (x - mean_) * factor_; }

  T mean_, factor_;
};

}  // namespace plumbline
