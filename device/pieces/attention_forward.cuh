// device/pieces/attention_forward.cuh
//
// Attention forward, one block for sixteen heads of a query row: scores of a tile of keys, a running
// maximum, values weighted by what the tile adds.
//
// Four warps share the tile twice: for scores each has a quarter of the keys, for the output a quarter
// of the channels, so that no sum is ever computed twice and 16 x 576 sums fit in registers. What they
// exchange is the maximum of each head and the weights, rounded as they are stored.
//
// Of each key 16 heads make 2·16·(D + Dv) FLOP, and its row is read once, 2·D bytes (2·Dv more if values
// are apart): 16 to 32 FLOP a byte, bound by L2. A fast kernel has all heads of a row in one block.
#pragma once
#include "device/pieces/attention.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class T, int Keys, int Width, bool OneLatent> struct AttentionTiles {
  using Rows = Tile<T, Keys, Width, Padded<16 / sizeof(T)>>;
  Rows key_rows, value_rows;
  DEVICE Rows& keys() { return key_rows; }
  DEVICE Rows& values() { return value_rows; }
};
template <class T, int Keys, int Width> struct AttentionTiles<T, Keys, Width, true> {
  using Rows = Tile<T, Keys, Width, Padded<16 / sizeof(T)>>;
  Rows rows;  // values are the first channels of keys
  DEVICE Rows& keys() { return rows; }
  DEVICE Rows& values() { return rows; }
};

// The tile takes the row's keys from number `first` on, and their values where those are apart. row: in its pool, -1: no
// key. By four warps, each key by one.
template <class T, int Keys, int Width, bool OneLatent, class RowNumbers>
DEVICE void load_tile(AttentionTiles<T, Keys, Width, OneLatent>& tile, RowNumbers& row_of,
                      const KeyList<T>& list, int first, int group) {
  const AttentionViews<T>& a = list.a;
  for (int j = warp(); j < Keys; j += 4) {
    const int row = list.at(first + j);
    const bool near = list.from_near(first + j);
    load_row<Width>(tile.keys(), j, near ? a.near_key : a.far_key, list.b, row, group);
    if (!OneLatent)
      load_row<Width>(tile.values(), j, near ? a.near_value : a.far_value, list.b, row, group);
    if (lane() == 0) row_of[j] = row;
  }
}

// Width: at least D and Dv. OneLatent: values are part of keys.
template <class T, int Width, bool OneLatent> struct AttentionForward {
  static constexpr int threads = 128, tile_keys = sizeof(T) == 2 ? 64 : 32;
  static constexpr int own_keys = tile_keys / 4, own_channels = Width / 4;
  static_assert(Width % 64 == 0, "each warp has whole pairs of groups of channels");
  struct Args {
    AttentionViews<T> in;
    View<T, 3> output;              // B·T H Dv
    View<float, 2> lse, max_logit;  // B·T H
  };
  struct Plan {
    Tile<T, tile_heads, Width, Padded<16 / sizeof(T)>> query;
    AttentionTiles<T, tile_keys, Width, OneLatent> tile;
    Tile<T, tile_heads, tile_keys, Padded<16 / sizeof(T)>> weight;
    Tile<float, tile_heads, 4> peak, mass;  // of each warp's keys
    Array<int, tile_keys> row;              // -1: no key
  };

  DEVICE static void without_keys(const Args& p, const KeyList<T>& list, const HeadTile& own) {
    const AttentionViews<T>& a = p.in;
    for (int i = thread(); i < own.count * a.value_width; i += threads)
      p.output(list.t, own.first + i / a.value_width, i % a.value_width) = Zero<T>::value();
    if (thread() >= own.count) return;
    const int h = own.first + thread();
    p.lse(list.t, h) = lse_without_keys(a, h);
    if (p.max_logit.exists()) p.max_logit(list.t, h) = -infinity();
  }

  DEVICE static void run(const Args& p, Plan& s) {
    const AttentionViews<T>& a = p.in;
    const KeyList<T> list(a, block(0));
    const HeadTile own = head_tile(a, block(1));
    if (!list.any()) return without_keys(p, list, own);
    load_heads<Width>(s.query, a.query, list.t, own);

    float output[own_channels / 8][4] = {}, top[2] = {-infinity(), -infinity()}, mass[2] = {};
    for (int first = 0; first < list.count(); first += tile_keys) {
      load_tile(s.tile, s.row, list, first, own.group);
      sync_block();  // the tile is complete

      float score[own_keys / 8][4] = {}, peak[2] = {-infinity(), -infinity()};
      Strip<T>::add(score, s.query, 0, s.tile.keys(), warp() * own_keys,
                    depth_of(a.query.extent(2)));
      bool seen[own_keys / 8][2];
      UNROLL
      for (int g = 0; g < own_keys / 8; ++g) UNROLL
      for (int i = 0; i < 4; ++i) {
        seen[g][i % 2] = s.row[warp() * own_keys + lane_column(g, i)] >= 0;
        score[g][i] *= a.scale;
        if (seen[g][i % 2]) peak[i / 2] = maximum(peak[i / 2], score[g][i]);
      }
      UNROLL
      for (int r = 0; r < 2; ++r) {
        peak[r] = maximum(peak[r], shuffle_xor(peak[r], 1));
        peak[r] = maximum(peak[r], shuffle_xor(peak[r], 2));
        if (lane() % 4 == 0) s.peak(lane_row(2 * r), warp()) = peak[r];
      }
      sync_block();  // all warps know their largest scores

      UNROLL
      for (int r = 0; r < 2; ++r) {
        float next = top[r];
        UNROLL
        for (int w = 0; w < 4; ++w) next = maximum(next, s.peak(lane_row(2 * r), w));
        const float shrink = next == top[r] ? 1.f : exponential(top[r] - next);
        top[r] = next, mass[r] *= shrink;
        UNROLL
        for (int g = 0; g < own_channels / 8; ++g)
          output[g][2 * r] *= shrink, output[g][2 * r + 1] *= shrink;
      }
      UNROLL
      for (int g = 0; g < own_keys / 8; ++g) UNROLL
      for (int i = 0; i < 4; ++i) {
        const float weight = seen[g][i % 2] ? exponential(score[g][i] - top[i / 2]) : 0.f;
        mass[i / 2] += weight;
        s.weight(lane_row(i), warp() * own_keys + lane_column(g, i)) = Stored<T>::of(weight);
      }
      sync_block();  // all weights are there

      Strip<T>::add_transposed(output, s.weight, 0, s.tile.values(), warp() * own_channels,
                               tile_keys);
      sync_block();  // everybody has read tile and weights
    }

    UNROLL
    for (int r = 0; r < 2; ++r) {
      mass[r] += shuffle_xor(mass[r], 1);
      mass[r] += shuffle_xor(mass[r], 2);
      if (lane() % 4 == 0) s.mass(lane_row(2 * r), warp()) = mass[r];
    }
    sync_block();  // all warps know their masses
    UNROLL
    for (int r = 0; r < 2; ++r) {
      const int head = lane_row(2 * r);
      if (head < own.count) finish(p, s, list.t, own.first + head, r, top[r], output);
    }
  }

  // Row r of a lane's two.
  DEVICE static void finish(const Args& p, Plan& s, std::int64_t t, int h, int r, float top,
                            const float (&output)[own_channels / 8][4]) {
    const AttentionViews<T>& a = p.in;
    float mass = 0.f;
    UNROLL
    for (int w = 0; w < 4; ++w) mass += s.mass(lane_row(2 * r), w);
    const RowSum sum = with_sink(a, h, top, mass);
    if (warp() == 0 && lane() % 4 == 0) {
      p.lse(t, h) = sum.lse;
      if (p.max_logit.exists()) p.max_logit(t, h) = top;
    }
    UNROLL
    for (int g = 0; g < own_channels / 8; ++g) UNROLL
    for (int i = 2 * r; i < 2 * r + 2; ++i) {
      const int c = warp() * own_channels + lane_column(g, i);
      if (c < a.value_width) p.output(t, h, c) = Stored<T>::of(output[g][i] * sum.share);
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
