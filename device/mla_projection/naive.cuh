// device/mla_projection/naive.cuh: forward; the products of device/pieces with epilogues of their own.
//
// Floor, V3.2 (E 7168, H 128, Rq 1536, Rkv 512, dn + dr 128 + 64, dv 128) at 4096 tokens: 0.57 TFLOP,
// 0.72 ms at 790 TFLOP/s; weights and results 0.75 GB, 0.17 ms. Fused epilogues save what a split
// would cost: query, k_nope and value written and read once more, 0.94 GB or 0.22 ms.
//
// A rotation needs two sums of a row. Columns of a tile are counted so that a pair is always (2i,
// 2i + 1) of its head, wherever the weight keeps its two columns: the sums of a pair are then
// neighbours in one lane's registers, for any pairing.
#pragma once
#include "device/linear/naive.cuh"
#include "device/pieces/rotation.cuh"
#include "device/rms_norm/naive.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

// Columns of a weight [R, H, nope + rest], all or one part of each head. nope is padded to an even
// number, so that what follows it starts at one.
struct HeadColumns {
  std::int64_t nope, rest;
  bool take_nope, take_rest;
  struct At {
    std::int64_t head, channel;  // channel of nope or of rest; past nope: padding
    bool is_rest;
  };
  DEVICE std::int64_t padded() const { return take_nope ? nope + nope % 2 : 0; }
  DEVICE std::int64_t of_a_head() const { return padded() + (take_rest ? rest : 0); }
  DEVICE At at(std::int64_t c) const {
    const std::int64_t o = c % of_a_head();
    return {c / of_a_head(), o < padded() ? o : o - padded(), o >= padded()};
  }
};
inline std::int64_t columns_of(const HeadColumns& c, std::int64_t heads) {
  return heads * ((c.take_nope ? c.nope + c.nope % 2 : 0) + (c.take_rest ? c.rest : 0));
}

template <class T> struct HeadArgs {
  View<const T, 2> latent;  // rows R
  View<const T, 3> weight;  // R H nope+rest
  View<const T, 2> bias;    // H nope+rest
  HeadColumns columns;
  DEVICE float biased(std::int64_t head, std::int64_t o, float sum) const {
    return bias.exists() ? sum + number(T(bias(head, o))) : sum;
  }
};

// query = scale·[nope, R pe] of latent·W + bias
template <class T> struct QueryTerms {
  using Element = T;
  static constexpr bool along_depth = true, along_columns = true;
  struct Args {
    HeadArgs<T> in;
    View<T, 3> query;   // rows H nope+rope
    Rotation rotation;  // of a head's channels
    float scale;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.query.extent(0); }
  DEVICE static std::int64_t depth(const Args& p) { return p.in.latent.extent(1); }
  DEVICE static std::int64_t columns(const Args& p) {
    return p.query.extent(1) * p.in.columns.of_a_head();
  }
  DEVICE static T a(const Args& p, std::int64_t n, std::int64_t r) { return p.in.latent(n, r); }
  DEVICE static std::int64_t member(const Args& p, std::int64_t i, bool second) {
    return second ? p.rotation.second(i, p.rotation.source_half)
                  : p.rotation.first(i, p.rotation.source_half);
  }
  DEVICE static T b(const Args& p, std::int64_t r, std::int64_t c) {
    const HeadColumns::At at = p.in.columns.at(c);
    if (at.is_rest) return p.in.weight(r, at.head, member(p, at.channel / 2, at.channel % 2));
    return at.channel < p.in.columns.nope ? T(p.in.weight(r, at.head, at.channel))
                                          : Zero<T>::value();
  }
  DEVICE static void store(const Args& p, std::int64_t n, std::int64_t c, float a, float b) {
    const HeadColumns::At at = p.in.columns.at(c);
    const auto write = [&](std::int64_t o, float x) {
      p.query(n, at.head, o) = Stored<T>::of(x * p.scale);
    };
    if (!at.is_rest) {
      write(at.channel, p.in.biased(at.head, at.channel, a));
      if (at.channel + 1 < p.in.columns.nope)
        write(at.channel + 1, p.in.biased(at.head, at.channel + 1, b));
      return;
    }
    const std::int64_t i = at.channel / 2;
    a = p.in.biased(at.head, member(p, i, false), a);
    b = p.in.biased(at.head, member(p, i, true), b);
    p.rotation.turn(n, i, a, b);
    write(p.rotation.first(i, p.rotation.result_half), a);
    write(p.rotation.second(i, p.rotation.result_half), b);
  }
};

// key's nope channels, and value, of latent·W + bias
template <class T> struct KeyValueTerms {
  using Element = T;
  static constexpr bool along_depth = true, along_columns = true;
  struct Args {
    HeadArgs<T> in;
    View<T, 3> key;    // rows H nope+rope
    View<T, 3> value;  // rows H dv
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.value.extent(0); }
  DEVICE static std::int64_t depth(const Args& p) { return p.in.latent.extent(1); }
  DEVICE static std::int64_t columns(const Args& p) {
    return p.value.extent(1) * p.in.columns.of_a_head();
  }
  DEVICE static T a(const Args& p, std::int64_t n, std::int64_t r) { return p.in.latent(n, r); }
  DEVICE static T b(const Args& p, std::int64_t r, std::int64_t c) {
    const HeadColumns::At at = p.in.columns.at(c);
    if (at.is_rest) return p.in.weight(r, at.head, p.in.columns.nope + at.channel);
    return at.channel < p.in.columns.nope ? T(p.in.weight(r, at.head, at.channel))
                                          : Zero<T>::value();
  }
  DEVICE static void store_one(const Args& p, std::int64_t n, std::int64_t c, float sum) {
    const HeadColumns::At at = p.in.columns.at(c);
    const std::int64_t nope = p.in.columns.nope;
    if (at.is_rest)
      p.value(n, at.head, at.channel) = Stored<T>::of(p.in.biased(at.head, nope + at.channel, sum));
    else if (at.channel < nope)
      p.key(n, at.head, at.channel) = Stored<T>::of(p.in.biased(at.head, at.channel, sum));
  }
  DEVICE static void store(const Args& p, std::int64_t n, std::int64_t c, float first,
                           float second) {
    store_one(p, n, c, first);
    if (c + 1 < columns(p)) store_one(p, n, c + 1, second);
  }
};

// k_pe, and its copy in the key of every head. A thread takes a pair.
template <class T> struct RotaryKey {
  static constexpr int threads = 128;
  struct Args {
    View<const float, 2> raw;  // rows Rkv+dr
    View<T, 2> k_pe;           // rows dr
    View<T, 3> key;            // rows H dn+dr
    Rotation rotation;         // of k_pe
    std::int64_t kv_rank, nope;
  };
  struct Plan {};
  DEVICE static void run(const Args& p, Plan&) {
    const std::int64_t at = std::int64_t(block(0)) * threads + thread();
    const std::int64_t n = at / p.rotation.pairs(), i = at % p.rotation.pairs();
    if (n >= p.raw.extent(0)) return;
    float a = p.raw(n, p.kv_rank + p.rotation.first(i, p.rotation.source_half));
    float b = p.raw(n, p.kv_rank + p.rotation.second(i, p.rotation.source_half));
    p.rotation.turn(n, i, a, b);
    const std::int64_t first = p.rotation.first(i, p.rotation.result_half),
                       second = p.rotation.second(i, p.rotation.result_half);
    const T one = Stored<T>::of(a), other = Stored<T>::of(b);
    p.k_pe(n, first) = one;
    p.k_pe(n, second) = other;
    for (std::int64_t h = 0; h < p.key.extent(1); ++h) {
      p.key(n, h, p.nope + first) = one;
      p.key(n, h, p.nope + second) = other;
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
