// device/csa_compress/naive_backward.cuh
//
// With w the weights of a channel, v its values, p = Σ w·v and d the cotangent of p behind norm and
// rotation,
//     dv_i = w_i·d,    dgate_i = dbias_i = w_i·d·(v_i − p).
// A token has lane B from its own block and lane A from the next: so a thread takes a channel of a
// token, and nothing is added twice. Softmaxes are not stored: a weight is exp(logit − top)/mass of
// the two numbers that the pooling kernel left.
#pragma once
#include "device/csa_compress/naive.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

// A cotangent before the rotation, read through it: row (b, j), channel c.
template <class T> struct TurnedBack {
  View<const T, 2> dy;  // rows (B N), D
  Rotation rotation;    // dim 0: none
  DEVICE float operator()(std::int64_t row, std::int64_t c) const {
    if (!dy.exists()) return 0.f;
    const std::int64_t off = c - rotation.start, half = rotation.pairs();
    if (off < 0 || off >= rotation.dim) return number(T(dy(row, c)));
    const std::int64_t i = rotation.source_half ? off % half : off / 2;
    float a = number(T(dy(row, rotation.first(i, rotation.result_half))));
    float b = number(T(dy(row, rotation.second(i, rotation.result_half))));
    rotation.turn_back(row, i, a, b);
    return c == rotation.first(i, rotation.source_half) ? a : b;
  }
};

// d of every pooled number, and the norm's factor of each block. A warp takes a block.
template <class T> struct PooledGradient {
  static constexpr int threads = row_threads;
  struct Args {
    View<const float, 2> pooled;  // rows (B N), D
    View<const T, 1> norm_weight;
    TurnedBack<T> dy;
    View<float, 2> d;
    View<float, 1> factor;
    float eps;
    bool norm;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t row = my_row(), width = p.pooled.extent(1);
    if (row >= p.pooled.extent(0)) return;  // a whole warp
    const float factor = p.norm ? rms_factor(p.pooled, row, p.eps) : 1.f;
    const auto inner = [&](std::int64_t c) -> float {
      const float g = p.dy(row, c);
      return p.norm_weight.exists() ? g * number(T(p.norm_weight(c))) : g;
    };
    float along = 0.f;
    for (std::int64_t c = lane(); c < width; c += 32)
      along = fused(inner(c), float(p.pooled(row, c)), along);
    along = warp_sum(along);
    const float back = factor * factor * factor * along / float(width);
    for (std::int64_t c = lane(); c < width; c += 32)
      p.d(row, c) = p.norm ? factor * inner(c) - float(p.pooled(row, c)) * back : inner(c);
    if (lane() == 0) p.factor(row) = factor;
  }
};

template <class T> struct BlockNormTerms {
  struct Args {
    View<const float, 2> pooled;
    TurnedBack<T> dy;
    View<const float, 1> factor;
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.pooled.extent(0); }
  DEVICE static float term(const Args& p, std::int64_t row, std::int64_t c) {
    return p.dy(row, c) * float(p.pooled(row, c)) * float(p.factor(row));
  }
};

// What a block sends to one of its entries.
template <class T> struct Shares {
  Pooled<T> in;
  View<const float, 3> pooled, top, mass, d;  // B N D
  DEVICE float value(std::int64_t b, std::int64_t j, bool lane_a, std::int64_t i,
                     std::int64_t c) const {
    const float logit = in.logit(b, j, lane_a, i, c) - float(top(b, j, c));
    return exponential(logit) / float(mass(b, j, c)) * float(d(b, j, c));
  }
  DEVICE float gate(std::int64_t b, std::int64_t j, bool lane_a, std::int64_t i, std::int64_t c,
                    float dvalue) const {
    return dvalue * (in.value(b, j, lane_a, i, c) - float(pooled(b, j, c)));
  }
};

// A cotangent of numbers that were copied: rows [from, …) of the tokens.
template <class T> struct Copied {
  View<const T, 3> dy;  // B count L·D
  std::int64_t from;
  DEVICE float at(std::int64_t b, std::int64_t s, std::int64_t c) const {
    if (!dy.exists() || s < from || s >= from + dy.extent(1)) return 0.f;
    return number(T(dy(b, s - from, c)));
  }
};

template <class T> struct TokenGradient {
  static constexpr int threads = element_threads;
  struct Args {
    Shares<T> share;
    View<const std::int32_t, 1> block_of;  // S
    Copied<T> left_kv, left_gate, next_kv, next_gate;
    View<float, 3> dkv, dgate;  // B S L·D
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const Pooled<T>& in = p.share.in;
    const std::int64_t at = my_element(), channels = in.lanes * in.width;
    const std::int64_t column = at % channels, s = at / channels % p.dkv.extent(1),
                       b = at / channels / p.dkv.extent(1);
    if (b >= p.dkv.extent(0)) return;
    const bool lane_a = column < (in.lanes - 1) * in.width;
    const std::int64_t c = column % in.width, own = std::int32_t(p.block_of(s));
    const std::int64_t j = lane_a ? own + 1 : own;  // the block that pools this number
    float dkv = 0.f, dgate = 0.f;
    const bool pools = own >= 0 && j < in.blocks() && (!lane_a || in.stands(b, j) == Before::block);
    if (pools) {
      const std::int64_t i = s - in.token(own, 0);
      dkv = p.share.value(b, j, lane_a, i, c);
      dgate = p.share.gate(b, j, lane_a, i, c, dkv);
    }
    p.dkv(b, s, column) = dkv + p.left_kv.at(b, s, column) + p.next_kv.at(b, s, column);
    p.dgate(b, s, column) = dgate + p.left_gate.at(b, s, column) + p.next_gate.at(b, s, column);
  }
};

// Of a prior: lane A of the first block, and what was handed on for want of a block.
template <class T> struct PriorGradient {
  static constexpr int threads = element_threads;
  struct Args {
    Shares<T> share;
    Copied<T> next_kv, next_gate;
    View<float, 3> dkv, dgate;  // B m 2D
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const Pooled<T>& in = p.share.in;
    const std::int64_t at = my_element(), channels = 2 * in.width;
    const std::int64_t c = at % channels, i = at / channels % in.m, b = at / channels / in.m;
    if (b >= p.dkv.extent(0)) return;
    float dkv = 0.f, dgate = 0.f;
    if (c < in.width && in.blocks() > 0 && in.stands(b, 0) == Before::prior) {
      dkv = p.share.value(b, 0, true, i, c);
      dgate = p.share.gate(b, 0, true, i, c, dkv);
    }
    p.dkv(b, i, c) = dkv + p.next_kv.at(b, i, c);
    p.dgate(b, i, c) = dgate + p.next_gate.at(b, i, c);
  }
};

// dposition_bias[i, column]: over all blocks, what goes to the gate of their entry i.
template <class T> struct PositionBiasTerms {
  struct Args {
    Shares<T> share;
    std::int64_t batch;
    View<float, 2> parts;  // columns are (i, column)
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.batch * p.share.in.blocks(); }
  DEVICE static float term(const Args& p, std::int64_t row, std::int64_t at) {
    const Pooled<T>& in = p.share.in;
    const std::int64_t channels = in.lanes * in.width, column = at % channels, i = at / channels;
    const std::int64_t b = row / in.blocks(), j = row % in.blocks(), c = column % in.width;
    const bool lane_a = column < (in.lanes - 1) * in.width;
    if (lane_a && in.stands(b, j) == Before::nothing) return 0.f;
    return p.share.gate(b, j, lane_a, i, c, p.share.value(b, j, lane_a, i, c));
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
