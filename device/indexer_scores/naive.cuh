// device/indexer_scores/naive.cuh
//
// A block makes 64 x 64 scores, head after head: a product over the width, then ReLU, weight and sum
// in registers, so that no [heads, rows, keys] is ever stored. Floor, V3.2 at 4096 rows and keys
// (64 heads of 128): 275 GFLOP, 0.35 ms at 790 TFLOP/s; output and inputs are 134 MB, 0.03 ms.
//
// Backward, with d = scale·dscore and x = q·k recomputed:
//     G[t,a,s] = d·w[t,a]·[x > 0],    dw[t,a] = Σ_s d·relu(x)
//     dq[t,a] = Σ_s G·k[s],           dk[s] = Σ_t,a G·q[t,a]
// G is f32 and must stay so (no rounding point stands here), so the products with it are made by
// ordinary additions. One kernel owns dq and dw, another dk: each computes x again, neither waits for
// the other, and no sum is left to atomics.
#pragma once
#include "device/pieces/product.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class T> struct ScoreTensors {
  View<const T, 4> q;  // B T A e
  View<const T, 3> k;  // B K e
  View<const T, 3> w;  // B T A
  float scale;
  bool relu;

  DEVICE std::int64_t rows() const { return q.extent(1); }
  DEVICE std::int64_t keys() const { return k.extent(1); }
  DEVICE std::int64_t heads() const { return q.extent(2); }
  DEVICE std::int64_t width() const { return q.extent(3); }
  DEVICE T query(std::int64_t b, std::int64_t t, std::int64_t a, std::int64_t i) const {
    return t < rows() && i < width() ? q(b, t, a, i) : Zero<T>::value();
  }
  DEVICE T key(std::int64_t b, std::int64_t s, std::int64_t i) const {
    return s < keys() && i < width() ? k(b, s, i) : Zero<T>::value();
  }
  DEVICE float weight(std::int64_t b, std::int64_t t, std::int64_t a) const {
    return number(T(w(b, t, a)));
  }
  DEVICE float kink(float x) const { return relu ? maximum(x, 0.f) : x; }  // NaN stays NaN
  DEVICE float slope(float x) const { return relu && !(x > 0.f) ? 0.f : 1.f; }
};

template <class T> struct Scores {
  static constexpr int threads = tile_threads;
  struct Args {
    ScoreTensors<T> in;
    View<float, 3> scores;  // B T K
  };
  using Plan = ProductPlan<T>;

  DEVICE static void run(const Args& p, Plan& s) {
    const std::int64_t row = std::int64_t(block(0)) * tile_rows,
                       key = std::int64_t(block(1)) * tile_columns, b = block(2);
    Sums z = {};
    for (std::int64_t a = 0; a < p.in.heads(); ++a) {
      Sums x = {};
      add_product<true, false>(
          s, x, p.in.width(),
          [&](int r, std::int64_t i) -> T { return p.in.query(b, row + r, a, i); },
          [&](std::int64_t i, int c) -> T { return p.in.key(b, key + c, i); });
      UNROLL
      for (int i = 0; i < 4; i += 2) {
        if (row + sum_row(i) >= p.in.rows()) continue;
        const float w = p.in.weight(b, row + sum_row(i), a);
        UNROLL
        for (int g = 0; g < tile_columns / 8; ++g) {
          z[g][i] = fused(w, p.in.kink(x[g][i]), z[g][i]);
          z[g][i + 1] = fused(w, p.in.kink(x[g][i + 1]), z[g][i + 1]);
        }
      }
    }
    UNROLL
    for (int g = 0; g < tile_columns / 8; ++g) UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t t = row + sum_row(i), c = key + sum_column(g, i);
      if (t < p.in.rows() && c < p.in.keys()) p.scores(b, t, c) = p.in.scale * z[g][i];
    }
  }
};

template <class T> struct ScoreGradientPlan {
  ProductPlan<T> scores;
  ProductPlan<float> gradient;
  Tile<float, tile_rows, tile_columns, Padded<4>> g;
};
static_assert(sizeof(ScoreGradientPlan<float>) == 2 * 17920 + 4 * 64 * 68,
              "the same on both sides");

template <class T> struct ScoreGradientArgs {
  ScoreTensors<T> in;
  View<const T, 3> dscores;  // B T K
  View<float, 4> dq;         // B T A e
  View<float, 3> dw;         // B T A
  View<float, 3> dk;         // B K e
  DEVICE float cotangent(std::int64_t b, std::int64_t t, std::int64_t s) const {
    return t < in.rows() && s < in.keys() ? in.scale * number(T(dscores(b, t, s))) : 0.f;
  }
};

// dq of 64 rows, one head and 64 channels; with the first channels dw as well. Grid: row tiles, heads
// times channel tiles, B.
template <class T> struct QueryGradient {
  static constexpr int threads = tile_threads;
  using Args = ScoreGradientArgs<T>;
  using Plan = ScoreGradientPlan<T>;

  DEVICE static void run(const Args& p, Plan& s) {
    const std::int64_t row = std::int64_t(block(0)) * tile_rows, b = block(2);
    const std::int64_t a = block(1) % p.in.heads(),
                       channel = block(1) / p.in.heads() * tile_columns;
    Sums dq = {};
    float dw[2] = {};  // of the lane's two rows
    for (std::int64_t key = 0; key < p.in.keys(); key += tile_columns) {
      Sums x = {};
      add_product<true, false>(
          s.scores, x, p.in.width(),
          [&](int r, std::int64_t i) -> T { return p.in.query(b, row + r, a, i); },
          [&](std::int64_t i, int c) -> T { return p.in.key(b, key + c, i); });
      UNROLL
      for (int i = 0; i < 4; ++i) {
        const std::int64_t t = row + sum_row(i);
        const float w = t < p.in.rows() ? p.in.weight(b, t, a) : 0.f;
        UNROLL
        for (int g = 0; g < tile_columns / 8; ++g) {
          const float d = p.cotangent(b, t, key + sum_column(g, i));
          dw[i / 2] = fused(d, p.in.kink(x[g][i]), dw[i / 2]);
          s.g(sum_row(i), sum_column(g, i)) = d * w * p.in.slope(x[g][i]);
        }
      }
      sync_block();  // G is complete; it is read again before the next product ends
      const std::int64_t rest = p.in.keys() - key;
      add_product<true, true>(
          s.gradient, dq, rest < tile_columns ? rest : tile_columns,
          [&](int r, std::int64_t k) -> float { return s.g(r, static_cast<int>(k)); },
          [&](std::int64_t k, int c) -> float {
            return number(p.in.key(b, key + k, channel + c));
          });
    }
    UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t t = row + sum_row(i);
      UNROLL
      for (int g = 0; g < tile_columns / 8; ++g) {
        const std::int64_t c = channel + sum_column(g, i);
        if (t < p.in.rows() && c < p.in.width()) p.dq(b, t, a, c) = dq[g][i];
      }
    }
    UNROLL
    for (int half = 0; half < 2; ++half) {  // a row's keys lie in four neighbouring lanes
      float sum = dw[half];
      sum += shuffle_xor(sum, 1);
      sum += shuffle_xor(sum, 2);
      const std::int64_t t = row + sum_row(half * 2);
      if (channel == 0 && lane() % 4 == 0 && t < p.in.rows()) p.dw(b, t, a) = sum;
    }
  }
};

// dk of 64 keys and 64 channels, over all rows and heads: x transposed, keys down and rows across.
// Grid: key tiles, channel tiles, B.
template <class T> struct KeyGradient {
  static constexpr int threads = tile_threads;
  using Args = ScoreGradientArgs<T>;
  using Plan = ScoreGradientPlan<T>;

  DEVICE static void run(const Args& p, Plan& s) {
    const std::int64_t key = std::int64_t(block(0)) * tile_rows,
                       channel = std::int64_t(block(1)) * tile_columns, b = block(2);
    Sums dk = {};
    for (std::int64_t row = 0; row < p.in.rows(); row += tile_columns)
      for (std::int64_t a = 0; a < p.in.heads(); ++a) {
        Sums x = {};
        add_product<true, false>(
            s.scores, x, p.in.width(),
            [&](int r, std::int64_t i) -> T { return p.in.key(b, key + r, i); },
            [&](std::int64_t i, int c) -> T { return p.in.query(b, row + c, a, i); });
        UNROLL
        for (int g = 0; g < tile_columns / 8; ++g) UNROLL
        for (int i = 0; i < 4; ++i) {
          const std::int64_t t = row + sum_column(g, i);
          const float w = t < p.in.rows() ? p.in.weight(b, t, a) : 0.f;
          s.g(sum_row(i), sum_column(g, i)) =
              p.cotangent(b, t, key + sum_row(i)) * w * p.in.slope(x[g][i]);
        }
        sync_block();  // G is complete
        const std::int64_t rest = p.in.rows() - row;
        add_product<true, true>(
            s.gradient, dk, rest < tile_columns ? rest : tile_columns,
            [&](int r, std::int64_t k) -> float { return s.g(r, static_cast<int>(k)); },
            [&](std::int64_t k, int c) -> float {
              return number(p.in.query(b, row + k, a, channel + c));
            });
      }
    UNROLL
    for (int g = 0; g < tile_columns / 8; ++g) UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = key + sum_row(i), c = channel + sum_column(g, i);
      if (at < p.in.keys() && c < p.in.width()) p.dk(b, at, c) = dk[g][i];
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
