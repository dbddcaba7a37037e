// device/mla_projection/naive_backward.cuh
//
// Every product of the way back has a cotangent that is made while it is read: D[n, h, o] of q·wq_b is
// scale·dquery turned back, that of kv·wkv_b is dkey or dvalue by its channel, that of x·wq_a a matrix
// of one head. Given D, the same three sums follow each time:
//     dlatent[n, r] = Σ_(h,o) D·W[r, h, o],    dW[r, h, o] = Σ_n latent[n, r]·D,    dbias = Σ_n D.
// D is f32 and stays so: ordinary fused additions, not the tensor core.
#pragma once
#include "device/mla_projection/naive.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class T> struct QueryCotangent {
  View<const T, 3> dquery;  // rows H nope+rope
  Rotation rotation;        // of a head's channels: the last
  float scale;
  DEVICE float operator()(std::int64_t n, std::int64_t h, std::int64_t o) const {
    if (!dquery.exists()) return 0.f;
    if (o < rotation.start) return number(T(dquery(n, h, o))) * scale;
    const std::int64_t off = o - rotation.start, half = rotation.pairs();
    const std::int64_t i = rotation.source_half ? off % half : off / 2;
    float a = number(T(dquery(n, h, rotation.first(i, rotation.result_half)))) * scale;
    float b = number(T(dquery(n, h, rotation.second(i, rotation.result_half)))) * scale;
    rotation.turn_back(n, i, a, b);
    return o == rotation.first(i, rotation.source_half) ? a : b;
  }
};
template <class T> struct KeyValueCotangent {
  View<const T, 3> dkey, dvalue;  // rows H nope+rope, rows H dv
  std::int64_t nope;
  DEVICE float operator()(std::int64_t n, std::int64_t h, std::int64_t o) const {
    if (o < nope) return dkey.exists() ? number(T(dkey(n, h, o))) : 0.f;
    return dvalue.exists() ? number(T(dvalue(n, h, o - nope))) : 0.f;
  }
};
struct MatrixCotangent {  // of one head
  View<const float, 2> d;
  DEVICE float operator()(std::int64_t n, std::int64_t, std::int64_t o) const { return d(n, o); }
};

// dlatent over the channels [begin, end) of each head; beside them a cotangent of the latent itself,
// or what stands there already.
template <class T, class D> struct LatentGradientTerms {
  using Element = float;
  static constexpr bool along_depth = true, along_columns = false;
  struct Args {
    D d;
    View<const T, 3> weight;   // R H O
    View<const T, 2> dlatent;  // rows R; or none
    View<float, 2> sum;        // rows R
    std::int64_t begin, end;
    bool add;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.sum.extent(0); }
  DEVICE static std::int64_t columns(const Args& p) { return p.sum.extent(1); }
  DEVICE static std::int64_t depth(const Args& p) { return p.weight.extent(1) * (p.end - p.begin); }
  DEVICE static float a(const Args& p, std::int64_t n, std::int64_t k) {
    return p.d(n, k / (p.end - p.begin), p.begin + k % (p.end - p.begin));
  }
  DEVICE static float b(const Args& p, std::int64_t k, std::int64_t r) {
    return number(T(p.weight(r, k / (p.end - p.begin), p.begin + k % (p.end - p.begin))));
  }
  DEVICE static void store_one(const Args& p, std::int64_t n, std::int64_t r, float x) {
    if (p.dlatent.exists()) x += number(T(p.dlatent(n, r)));
    if (p.add) x += float(p.sum(n, r));
    p.sum(n, r) = x;
  }
  DEVICE static void store(const Args& p, std::int64_t n, std::int64_t r, float first,
                           float second) {
    store_one(p, n, r, first);
    if (r + 1 < columns(p)) store_one(p, n, r + 1, second);
  }
};

template <class T, class D> struct HeadWeightTerms {
  using Element = float;
  static constexpr bool along_depth = false, along_columns = true;
  struct Args {
    D d;
    View<const T, 2> latent;  // rows R
    View<float, 3> dweight;   // R H O
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.dweight.extent(0); }
  DEVICE static std::int64_t columns(const Args& p) {
    return p.dweight.extent(1) * p.dweight.extent(2);
  }
  DEVICE static std::int64_t depth(const Args& p) { return p.latent.extent(0); }
  DEVICE static float a(const Args& p, std::int64_t r, std::int64_t n) {
    return number(T(p.latent(n, r)));
  }
  DEVICE static float b(const Args& p, std::int64_t n, std::int64_t j) {
    return p.d(n, j / p.dweight.extent(2), j % p.dweight.extent(2));
  }
  DEVICE static void store(const Args& p, std::int64_t r, std::int64_t j, float first,
                           float second) {
    const std::int64_t width = p.dweight.extent(2);
    p.dweight(r, j / width, j % width) = first;
    if (j + 1 < columns(p)) p.dweight(r, (j + 1) / width, (j + 1) % width) = second;
  }
};

template <class D> struct HeadBiasTerms {
  struct Args {
    D d;
    std::int64_t count, width;  // rows, channels of a head
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.count; }
  DEVICE static float term(const Args& p, std::int64_t n, std::int64_t j) {
    return p.d(n, j / p.width, j % p.width);
  }
};

// The raw rotary key's cotangent: dk_pe and those of all heads' keys, turned back.
template <class T> struct RotaryKeyGradient {
  static constexpr int threads = 128;
  struct Args {
    View<const T, 2> dk_pe;  // rows dr
    View<const T, 3> dkey;   // rows H dn+dr
    View<float, 2> draw;     // rows Rkv+dr: the last dr
    Rotation rotation;       // of k_pe
    std::int64_t kv_rank, nope;
  };
  struct Plan {};
  DEVICE static float all_heads(const Args& p, std::int64_t n, std::int64_t o) {
    float sum = p.dk_pe.exists() ? number(T(p.dk_pe(n, o))) : 0.f;
    if (p.dkey.exists())
      for (std::int64_t h = 0; h < p.dkey.extent(1); ++h)
        sum += number(T(p.dkey(n, h, p.nope + o)));
    return sum;
  }
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t at = std::int64_t(block(0)) * threads + thread();
    const std::int64_t n = at / p.rotation.pairs(), i = at % p.rotation.pairs();
    if (n >= p.draw.extent(0)) return;
    float a = all_heads(p, n, p.rotation.first(i, p.rotation.result_half));
    float b = all_heads(p, n, p.rotation.second(i, p.rotation.result_half));
    p.rotation.turn_back(n, i, a, b);
    p.draw(n, p.kv_rank + p.rotation.first(i, p.rotation.source_half)) = a;
    p.draw(n, p.kv_rank + p.rotation.second(i, p.rotation.source_half)) = b;
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
