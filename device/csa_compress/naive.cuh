// device/csa_compress/naive.cuh: forward.
//
// A thread pools one channel of one block; neighbours have neighbouring channels, so every read of a
// token is a row. Maximum first, then the sum, then the weights: three passes over at most 2m gates,
// the later two from L1. A second kernel, a warp for each block, normalises and rotates. Floor,
// V4-Flash at 4096 tokens (m 4, D 512, two lanes): kv and gate are read once, 16.8 MB, and pooled
// numbers written and read: 6 µs at 4.3 TB/s; 0.02 GFLOP.
#pragma once
#include "device/csa_compress/launch.hpp"
#include "device/pieces/column_sums.cuh"
#include "device/pieces/rotation.cuh"
#include "device/pieces/rows.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

// kv and gate of whatever a block pools: entry i of lane A, or the block's own token i.
template <class T> struct Pooled {
  View<const T, 3> kv, gate;              // B S L·D
  View<const T, 2> bias;                  // m L·D
  View<const T, 3> prior_kv, prior_gate;  // B m 2D
  View<const std::int32_t, 1> first;      // N
  View<const std::int32_t, 2> before;     // B N
  std::int64_t m, width, lanes;

  DEVICE std::int64_t blocks() const { return first.extent(0); }
  DEVICE Before stands(std::int64_t b, std::int64_t j) const {
    return static_cast<Before>(std::int32_t(before(b, j)));
  }
  DEVICE std::int64_t column(bool lane_a, std::int64_t c) const {
    return lane_a ? c : (lanes - 1) * width + c;
  }
  DEVICE std::int64_t token(std::int64_t j, std::int64_t i) const {
    return std::int32_t(first(j)) + i;
  }
  DEVICE float read(const View<const T, 3>& tokens, const View<const T, 3>& prior, std::int64_t b,
                    std::int64_t j, bool lane_a, std::int64_t i, std::int64_t c) const {
    if (lane_a && stands(b, j) == Before::prior) return number(T(prior(b, i, column(true, c))));
    return number(T(tokens(b, token(lane_a ? j - 1 : j, i), column(lane_a, c))));
  }
  DEVICE float value(std::int64_t b, std::int64_t j, bool lane_a, std::int64_t i,
                     std::int64_t c) const {
    return read(kv, prior_kv, b, j, lane_a, i, c);
  }
  DEVICE float logit(std::int64_t b, std::int64_t j, bool lane_a, std::int64_t i,
                     std::int64_t c) const {
    const float g = read(gate, prior_gate, b, j, lane_a, i, c);
    return bias.exists() ? g + number(T(bias(i, column(lane_a, c)))) : g;
  }
  // f(lane_a, i) for all that block j pools: lane A first.
  template <class F> DEVICE void each(std::int64_t b, std::int64_t j, F f) const {
    if (stands(b, j) != Before::nothing)
      for (std::int64_t i = 0; i < m; ++i) f(true, i);
    for (std::int64_t i = 0; i < m; ++i) f(false, i);
  }
};

constexpr int element_threads = 128;
constexpr std::int64_t element_blocks(std::int64_t count) {
  return (count + element_threads - 1) / element_threads;
}
DEVICE std::int64_t my_element() { return std::int64_t(block(0)) * element_threads + thread(); }

template <class T> struct PoolBlocks {
  static constexpr int threads = element_threads;
  struct Args {
    Pooled<T> in;
    View<float, 3> pooled, top, mass;  // B N D: Σ w·kv, the largest logit, Σ exp(logit − top)
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t at = my_element(), c = at % p.in.width, j = at / p.in.width % p.in.blocks(),
                       b = at / p.in.width / p.in.blocks();
    if (b >= p.pooled.extent(0)) return;
    float top = p.in.logit(b, j, false, 0, c);
    p.in.each(b, j, [&](bool lane_a, std::int64_t i) {
      top = maximum(top, p.in.logit(b, j, lane_a, i, c));
    });
    float mass = 0.f, sum = 0.f;
    p.in.each(b, j, [&](bool lane_a, std::int64_t i) {
      mass += exponential(p.in.logit(b, j, lane_a, i, c) - top);
    });
    p.in.each(b, j, [&](bool lane_a, std::int64_t i) {
      const float weight = exponential(p.in.logit(b, j, lane_a, i, c) - top) / mass;
      sum = fused(weight, p.in.value(b, j, lane_a, i, c), sum);
    });
    p.pooled(b, j, c) = sum;
    p.top(b, j, c) = top;
    p.mass(b, j, c) = mass;
  }
};

template <class T> struct FinishBlocks {
  static constexpr int threads = row_threads;
  struct Args {
    View<const float, 2> pooled;  // rows (B N), D
    View<const T, 1> norm_weight;
    View<T, 2> compressed;  // rows, D
    Rotation rotation;      // dim 0: none
    float eps;
    bool norm;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t row = my_row(), width = p.pooled.extent(1);
    if (row >= p.pooled.extent(0)) return;  // a whole warp
    const float factor = p.norm ? rms_factor(p.pooled, row, p.eps) : 1.f;
    const auto normal = [&](std::int64_t c) -> float {
      const float x = float(p.pooled(row, c)) * factor;
      return p.norm_weight.exists() ? x * number(T(p.norm_weight(c))) : x;
    };
    const std::int64_t start = p.rotation.start, end = start + p.rotation.dim;
    for (std::int64_t c = lane(); c < width; c += 32)
      if (c < start || c >= end) p.compressed(row, c) = Stored<T>::of(normal(c));
    for (std::int64_t i = lane(); i < p.rotation.pairs(); i += 32) {
      float a = normal(p.rotation.first(i, p.rotation.source_half));
      float b = normal(p.rotation.second(i, p.rotation.source_half));
      p.rotation.turn(row, i, a, b);
      p.compressed(row, p.rotation.first(i, p.rotation.result_half)) = Stored<T>::of(a);
      p.compressed(row, p.rotation.second(i, p.rotation.result_half)) = Stored<T>::of(b);
    }
  }
};

// Tokens [from, from + count) of every batch, bit for bit; none where there is no source: zeros.
template <class T> struct CopyTokens {
  static constexpr int threads = element_threads;
  struct Args {
    View<const T, 3> x;  // B S L·D
    View<T, 3> y;        // B count L·D
    std::int64_t from;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t at = my_element(), width = p.y.extent(2);
    const std::int64_t c = at % width, s = at / width % p.y.extent(1),
                       b = at / width / p.y.extent(1);
    if (b >= p.y.extent(0)) return;
    p.y(b, s, c) = p.x.exists() ? T(p.x(b, p.from + s, c)) : Zero<T>::value();
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
