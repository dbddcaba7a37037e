// device/layer_norm/naive.cuh
//
// A warp takes a row, as in rms_norm; three reads of x, the last two from L1: the variance comes from
// deviations, since mean(x²) − mean(x)² loses every digit where the mean is large. A row of equal
// numbers is noticed: its mean would round, and its deviations would not be 0.
//
//     y_i = n_i·w_i + c_i,    n_i = (x_i − mean)·r,    r = (var + eps)^(−1/2),    and with g = dy·w
//     dx_i = r·(g_i − mean(g) − n_i·mean(g·n)),    dw_i = Σ_rows dy_i·n_i,    dc_i = Σ_rows dy_i
#pragma once
#include "device/pieces/column_sums.cuh"
#include "device/pieces/rows.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

struct Moments {
  float mean, factor;
  DEVICE float normal(float x) const { return (x - mean) * factor; }
};
template <class T> DEVICE Moments moments(const View<const T, 2>& x, std::int64_t row, float eps) {
  const std::int64_t width = x.extent(1);
  const float first = number(T(x(row, 0)));
  float sum = 0.f, squares = 0.f;
  int others = 0;
  for (std::int64_t i = lane(); i < width; i += 32) {
    const float value = number(T(x(row, i)));
    sum += value;
    others += value != first;
  }
  sum = warp_sum(sum);
  Moments m;
  m.mean = warp_sum(others) == 0 ? first : sum / float(width);
  for (std::int64_t i = lane(); i < width; i += 32) {
    const float off = number(T(x(row, i))) - m.mean;
    squares = fused(off, off, squares);
  }
  m.factor = fast_rsqrt(warp_sum(squares) / float(width) + eps);
  return m;
}

template <class T> struct LayerForward {
  static constexpr int threads = row_threads;
  struct Args {
    View<const T, 2> x;
    View<const T, 1> weight, bias;
    View<T, 2> y;
    float eps;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t row = my_row();
    if (row >= p.x.extent(0)) return;  // a whole warp
    const Moments m = moments(p.x, row, p.eps);
    for (std::int64_t i = lane(); i < p.x.extent(1); i += 32) {
      float value = m.normal(number(T(p.x(row, i))));
      if (p.weight.exists()) value *= number(T(p.weight(i)));
      if (p.bias.exists()) value += number(T(p.bias(i)));
      p.y(row, i) = Stored<T>::of(value);
    }
  }
};

// dx, and the moments of each row for the sums over rows.
template <class T> struct LayerInputGradient {
  static constexpr int threads = row_threads;
  struct Args {
    View<const T, 2> x;
    View<const T, 1> weight;
    View<const T, 2> dy;
    View<float, 2> dx;
    View<float, 2> kept;  // rows, (mean, factor)
    float eps;
  };
  struct Plan {};
  DEVICE static float inner(const Args& p, std::int64_t row, std::int64_t i) {  // g
    const float d = number(T(p.dy(row, i)));
    return p.weight.exists() ? d * number(T(p.weight(i))) : d;
  }
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t row = my_row(), width = p.x.extent(1);
    if (row >= p.x.extent(0)) return;
    const Moments m = moments(p.x, row, p.eps);
    float mean_g = 0.f, mean_gn = 0.f;
    for (std::int64_t i = lane(); i < width; i += 32) {
      const float g = inner(p, row, i);
      mean_g += g;
      mean_gn = fused(g, m.normal(number(T(p.x(row, i)))), mean_gn);
    }
    mean_g = warp_sum(mean_g) / float(width);
    mean_gn = warp_sum(mean_gn) / float(width);
    for (std::int64_t i = lane(); i < width; i += 32) {
      const float n = m.normal(number(T(p.x(row, i))));
      p.dx(row, i) = m.factor * (inner(p, row, i) - mean_g - n * mean_gn);
    }
    if (lane() == 0) p.kept(row, 0) = m.mean, p.kept(row, 1) = m.factor;
  }
};

template <class T> struct LayerWeightTerms {
  struct Args {
    View<const T, 2> x, dy;
    View<const float, 2> kept;
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.x.extent(0); }
  DEVICE static float term(const Args& p, std::int64_t row, std::int64_t i) {
    const Moments m{p.kept(row, 0), p.kept(row, 1)};
    return number(T(p.dy(row, i))) * m.normal(number(T(p.x(row, i))));
  }
};
template <class T> struct LayerBiasTerms {
  struct Args {
    View<const T, 2> dy;
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.dy.extent(0); }
  DEVICE static float term(const Args& p, std::int64_t row, std::int64_t i) {
    return number(T(p.dy(row, i)));
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
