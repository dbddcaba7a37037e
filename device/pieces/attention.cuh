// device/pieces/attention.cuh
//
// What kernels of an attention share: their arguments as views, the keys of a row, tiles of both.
#pragma once
#include "device/pieces/attention.hpp"
#include "device/pieces/logarithms.cuh"
#include "device/pieces/strips.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class T> struct AttentionViews {
  View<const T, 3> query;                  // B·T H D
  View<const T, 4> near_key, far_key;      // B rows G D
  View<const T, 4> near_value, far_value;  // B rows G Dv
  View<const std::int32_t, 2> stretch;     // B·T 2
  View<const std::int32_t, 2> slot;        // B·T k
  View<const T, 1> sink;
  std::int64_t rows;
  int slots, groups, value_width;
  float scale;
  LseForm lse_form;
};

constexpr float ln_two = 0.693147182f;
DEVICE float infinity() { return as_float(0x7F800000); }

// Sixteen heads that use one key head: what a strip has rows for.
constexpr int tile_heads = 16;
BOTH constexpr std::int64_t head_tiles(std::int64_t heads, std::int64_t groups) {
  return groups * ((heads / groups + tile_heads - 1) / tile_heads);
}
struct HeadTile {
  int first, count, group;
};
template <class T> DEVICE HeadTile head_tile(const AttentionViews<T>& a, int number) {
  const int each = static_cast<int>(a.query.extent(1)) / a.groups;
  const int tiles = (each + tile_heads - 1) / tile_heads;
  const int begin = number % tiles * tile_heads;
  return {number / tiles * each + begin, minimum(tile_heads, each - begin), number / tiles};
}

// The keys of a query row, numbered 0 … count(): first those of the stretch, then the slots.
template <class T> struct KeyList {
  const AttentionViews<T>& a;
  std::int64_t t, b;
  int first, near;
  bool real;

  DEVICE KeyList(const AttentionViews<T>& views, std::int64_t row)
      : a(views), t(row), b(row / views.rows) {
    first = a.stretch(t, 0);
    const int count = a.stretch(t, 1);
    real = count >= 0;
    near = maximum(count, 0);
  }
  DEVICE int count() const { return near + (real ? a.slots : 0); }
  // Its row in its pool, or −1.
  DEVICE int at(int j) const {
    if (j < near) return first + j;
    return j < count() ? int(a.slot(t, j - near)) : -1;
  }
  DEVICE bool from_near(int j) const { return j < near; }
  DEVICE bool any() const {
    bool found = near > 0;
    for (int j = lane(); j < count() - near; j += 32) found = found || at(near + j) >= 0;
    return ballot(found) != 0;
  }
};

// Row `to` of a tile takes channels of a row of a pool, zeros beyond them or where there is no key. One
// warp: neighbouring lanes read neighbouring channels.
template <int Width, class T, class Rows> DEVICE void load_row(Rows& tile, int to,
                                                               const View<const T, 4>& from,
                                                               std::int64_t b, int row, int group) {
  for (int c = lane(); c < Width; c += 32)
    tile(to, c) = row >= 0 && c < from.extent(3) ? T(from(b, row, group, c)) : Zero<T>::value();
}
// Heads of a query row likewise.
template <int Width, class T, class Rows>
DEVICE void load_heads(Rows& tile, const View<const T, 3>& from, std::int64_t t,
                       const HeadTile& own) {
  for (int h = warp(); h < tile_heads; h += 4) {
    for (int c = lane(); c < Width; c += 32)
      tile(h, c) =
          h < own.count && c < from.extent(2) ? T(from(t, own.first + h, c)) : Zero<T>::value();
  }
}

// Channels that a product has to go through.
DEVICE int depth_of(std::int64_t width) {
  return static_cast<int>((width + strip_depth - 1) / strip_depth) * strip_depth;
}

// A head's sink, and whether there is one: −inf is none.
struct Sink {
  float logit = 0.f;
  bool there = false;
  DEVICE bool finite() const { return there && logit < infinity(); }
};
template <class T> DEVICE Sink sink_of(const AttentionViews<T>& a, int head) {
  if (!a.sink.exists()) return {};
  const float logit = number(T(a.sink(head)));
  return {logit, logit > -infinity()};
}

// What is reported of a row and a head that have no keys.
template <class T> DEVICE float lse_without_keys(const AttentionViews<T>& a, int head) {
  if (!a.lse_form.empty_is_sink) return a.lse_form.empty;
  const float lse = number(T(a.sink(head)));
  return a.lse_form.base_two ? lse / ln_two : lse;
}
// The sink joins in, which may be larger than all keys: of Σ exp(c − top) = mass over the keys, by
// what the sum of weighted values is to be multiplied, and the lse as it is reported.
struct RowSum {
  float share, lse;
};
template <class T>
DEVICE RowSum with_sink(const AttentionViews<T>& a, int head, float top, float mass) {
  const Sink sink = sink_of(a, head);
  RowSum sum = {1.f / mass, top + natural_log(mass)};
  if (sink.there) {
    const float high = maximum(top, sink.logit);
    const float kept = top == high ? 1.f : exponential(top - high),
                lost = sink.logit == high ? 1.f : exponential(sink.logit - high),
                all = fused(mass, kept, lost);
    sum.share = sink.finite() ? kept / all : 0.f;
    if (a.lse_form.counts_sink) sum.lse = sink.finite() ? high + natural_log(all) : infinity();
  }
  if (a.lse_form.base_two) sum.lse = sum.lse / ln_two;
  return sum;
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
