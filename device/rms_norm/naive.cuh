// device/rms_norm/naive.cuh
//
// A warp takes a row: its lanes read neighbours, sums are butterflies of the warp, and nothing is
// shared or waited for. Forward reads x twice (the second time from L1) and writes y: bound by
// memory, 4·width bytes a row in bf16; 4096 rows of 7168 take 27 µs at 4.3 TB/s.
//
//     y_i = x_i·r·w_i,    r = (mean(x²) + eps)^(−1/2),    and with g = dy·w
//     dx_i = r·g_i − x_i·r³·(Σ_j g_j·x_j)/n,    dw_i = Σ_rows dy_i·x_i·r
#pragma once
#include "device/pieces/column_sums.cuh"
#include "device/pieces/rows.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

// X, W, Y: what x, weight and y are stored in. x may be rows of something wider.
template <class X, class W, class Y> struct RmsForward {
  static constexpr int threads = row_threads;
  struct Args {
    View<const X, 2> x;
    View<const W, 1> weight;
    View<Y, 2> y;
    float eps;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t row = my_row();
    if (row >= p.x.extent(0)) return;  // a whole warp
    const float factor = rms_factor(p.x, row, p.eps);
    for (std::int64_t i = lane(); i < p.x.extent(1); i += 32) {
      const float normal = number(X(p.x(row, i))) * factor;
      p.y(row, i) = Stored<Y>::of(p.weight.exists() ? normal * number(W(p.weight(i))) : normal);
    }
  }
};

// dx, and r of each row for the sums over rows. G: what dy is stored in.
template <class X, class W, class G> struct RmsInputGradient {
  static constexpr int threads = row_threads;
  struct Args {
    View<const X, 2> x;
    View<const W, 1> weight;
    View<const G, 2> dy;
    View<float, 2> dx;
    View<float, 1> factor;  // rows
    float eps;
  };
  struct Plan {};
  DEVICE static float inner(const Args& p, std::int64_t row, std::int64_t i) {  // g
    const float d = number(G(p.dy(row, i)));
    return p.weight.exists() ? d * number(W(p.weight(i))) : d;
  }
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t row = my_row(), width = p.x.extent(1);
    if (row >= p.x.extent(0)) return;
    const float factor = rms_factor(p.x, row, p.eps);
    float along = 0.f;
    for (std::int64_t i = lane(); i < width; i += 32)
      along = fused(inner(p, row, i), number(X(p.x(row, i))), along);
    along = warp_sum(along);
    const float back = factor * factor * factor * along / float(width);
    for (std::int64_t i = lane(); i < width; i += 32)
      p.dx(row, i) = factor * inner(p, row, i) - number(X(p.x(row, i))) * back;
    if (lane() == 0) p.factor(row) = factor;
  }
};

template <class X, class G> struct RmsWeightTerms {
  struct Args {
    View<const X, 2> x;
    View<const G, 2> dy;
    View<const float, 1> factor;
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.x.extent(0); }
  DEVICE static float term(const Args& p, std::int64_t row, std::int64_t i) {
    const float d = number(G(p.dy(row, i))), x = number(X(p.x(row, i)));
    return d * x * p.factor(row);
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
