// device/csa_attention/fast.cuh
//
// csa_attention forward with all heads of a query row in one block, by mma.sync. bf16 only.
//
// Roofline, V4-Flash at 128K (S = 131072, H = 64, D = 512, 512 + 128 keys, H200):
//     FLOP      2·S·640·64·(512 + 512) = 11.0 T                     13.9 ms at 790 TFLOP/s   <- the floor
//     memory    query and output, 2·2·S·64·512 = 17.2 GB            4.1 ms at 4.3 TB/s
//     L2        gathered rows, S·640·1024 B = 86 GB                 about 15 ms: as dear as the products
// So each gathered row must be read once a query row, for all 64 heads, and be on its way while the
// products of the one before are worked out. (With 16 heads a block, as in naive.cuh, L2 alone is 60 ms.)
//
// By mma.sync a fragment goes from shared memory into registers first. Of a tile of 32 keys a warp loads
// 64 fragments of 512 bytes for its 64 products of scores and 34 for its 64 of values: 98·4 cycles at
// 128 B a cycle, against 128·2 cycles of products (sm_80). Shared memory bounds this text at 65 % of the
// tensor core. It is for sm_80; on sm_90a wgmma reads operands where they lie.
#pragma once
#include "device/pieces/attention.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

// Width: at least D, which is a multiple of 8 (16 bytes).
template <int Width> struct CsaForward {
  // Eight warps: 64 x 512 sums are 128 registers of each of 256 threads. Warp w has heads w/2·16 … + 16;
  // its pair w ^ 1 has the same heads. In scores the two share the keys, in the output the channels.
  static constexpr int threads = 256, heads = 64, keys = 32;
  static constexpr int own_keys = keys / 2, own_channels = Width / 2, chunks = Width / 8;

  struct Args {
    AttentionViews<bf16> in;
    View<bf16, 3> output;  // B·T H D
    View<float, 2> lse;    // B·T H
  };
  struct Plan {
    Tile<bf16, heads, Width, Padded<8>> query;  // at last, the output on its way out
    Tile<bf16, keys, Width, Padded<8>> key[2];  // one is multiplied while the other is filled
    Tile<bf16, heads, keys, Padded<8>> weight;
    Tile<int, 2, keys> row;            // −1: no key
    Tile<float, heads, 2> peak, mass;  // of either warp's keys
  };
  static_assert(sizeof(Plan) <= 163 * 1024, "what a block has on sm_80");

  DEVICE static int own_heads() { return warp() / 2 * 16; }
  // Where the two warps of a pair meet; the others go on.
  DEVICE static int pair() { return 1 + warp() / 2; }

  // 16 bytes a lane, so a warp fetches a row at a time and reads its number once.
  DEVICE static void fetch(const KeyList<bf16>& list, Plan& s, int tile) {
    const AttentionViews<bf16>& a = list.a;
    for (int j = warp(); j < keys; j += threads / 32) {
      const int number = tile * keys + j, row = list.at(number);
      const View<const bf16, 4>& pool = list.from_near(number) ? a.near_key : a.far_key;
      for (int c = lane() * 8; c < Width; c += 256) {
        if (row >= 0 && c < a.query.extent(2))
          copy_async16(s.key[tile % 2](j, c), pool(list.b, row, 0, c));
        else  // zeros, whatever is named; a pool may be empty
          copy_async16(s.key[tile % 2](j, c), a.query(list.t, 0, 0), false);
      }
      if (lane() == 0) s.row(tile % 2, j) = row;
    }
    commit();
  }

  DEVICE static void fetch_query(const KeyList<bf16>& list, Plan& s, int first, int count) {
    const AttentionViews<bf16>& a = list.a;
    for (int h = warp(); h < heads; h += threads / 32) {
      for (int c = lane() * 8; c < Width; c += 256) {
        const bool there = h < count && c < a.query.extent(2);
        copy_async16(s.query(h, c), a.query(list.t, there ? first + h : 0, there ? c : 0), there);
      }
    }
  }

  DEVICE static void without_keys(const Args& p, const KeyList<bf16>& list, int first, int count) {
    const int width = static_cast<int>(p.output.extent(2));
    for (int i = thread(); i < count * width; i += threads)
      p.output(list.t, first + i / width, i % width) = bf16{0};
    for (int h = thread(); h < count; h += threads)
      p.lse(list.t, first + h) = lse_without_keys(p.in, first + h);
  }

  DEVICE static void run(const Args& p, Plan& s) {
    const AttentionViews<bf16>& a = p.in;
    const KeyList<bf16> list(a, block(0));
    const int first = block(1) * heads,
              count = minimum(heads, static_cast<int>(a.query.extent(1)) - first);
    if (!list.any()) return without_keys(p, list, first, count);
    const int tiles = (list.count() + keys - 1) / keys, half = warp() % 2;
    const int depth = depth_of(a.query.extent(2));
    const float scale =
        a.scale / ln_two;  // logits in base 2: one multiplication less for each weight

    fetch_query(list, s, first, count);  // in the group of the first tile
    fetch(list, s, 0);
    float output[own_channels / 8][4] = {}, top[2] = {-infinity(), -infinity()}, mass[2] = {};
    for (int tile = 0; tile < tiles; ++tile) {
      if (tile + 1 < tiles) {
        fetch(list, s, tile + 1);
        wait_groups<1>();  // all but the tile that has just been asked for
      } else {
        wait_groups<0>();  // nothing was asked for
      }
      sync_block();  // every thread's part of this tile has landed
      auto& key = s.key[tile % 2];

      float score[own_keys / 8][4] = {};
      for (int k = 0; k < depth; k += 16)
        multiply(score, load_a(s.query, own_heads(), k), key, half * own_keys, k);
      add_tile(p, s, tile % 2, scale, score, top, mass, output);

      UNROLL
      for (int k = 0; k < keys; k += 16)
        multiply_transposed(output, load_a(s.weight, own_heads(), k), key, half * own_channels, k);
      sync_block();  // every thread has read this tile: its buffer may be filled again
    }
    finish(p, s, list.t, first, count, top, mass, output);
  }

  // From scores to weights under the new maximum.
  DEVICE static void add_tile(const Args&, Plan& s, int buffer, float scale,
                              float (&score)[own_keys / 8][4], float (&top)[2], float (&mass)[2],
                              float (&output)[own_channels / 8][4]) {
    const int half = warp() % 2;
    float peak[2] = {-infinity(), -infinity()};
    bool seen[own_keys / 8][2];
    UNROLL
    for (int g = 0; g < own_keys / 8; ++g) {
      UNROLL
      for (int i = 0; i < 4; ++i) {
        seen[g][i % 2] = s.row(buffer, half * own_keys + lane_column(g, i)) >= 0;
        score[g][i] *= scale;
        if (seen[g][i % 2]) peak[i / 2] = maximum(peak[i / 2], score[g][i]);
      }
    }
    UNROLL
    for (int r = 0; r < 2; ++r) {
      peak[r] = maximum(peak[r], shuffle_xor(peak[r], 1));
      peak[r] = maximum(peak[r], shuffle_xor(peak[r], 2));
      if (lane() % 4 == 0) s.peak(own_heads() + lane_row(2 * r), half) = peak[r];
    }
    sync_named(pair(), 64);  // both know their largest scores

    float shrink[2];
    UNROLL
    for (int r = 0; r < 2; ++r) {
      const int h = own_heads() + lane_row(2 * r);
      const float next = maximum(top[r], maximum(float(s.peak(h, 0)), float(s.peak(h, 1))));
      shrink[r] = next == top[r] ? 1.f : fast_exp2(top[r] - next);
      top[r] = next, mass[r] *= shrink[r];
    }
    // The maximum seldom moves after the first tiles: then 128 multiplications can be left out.
    if (ballot(shrink[0] != 1.f || shrink[1] != 1.f)) {
      UNROLL
      for (int g = 0; g < own_channels / 8; ++g) {
        output[g][0] *= shrink[0], output[g][1] *= shrink[0];
        output[g][2] *= shrink[1], output[g][3] *= shrink[1];
      }
    }
    UNROLL
    for (int g = 0; g < own_keys / 8; ++g) {
      UNROLL
      for (int i = 0; i < 4; i += 2) {
        const float left = seen[g][0] ? fast_exp2(score[g][i] - top[i / 2]) : 0.f,
                    right = seen[g][1] ? fast_exp2(score[g][i + 1] - top[i / 2]) : 0.f;
        mass[i / 2] += left + right;
        store_pair(s.weight(own_heads() + lane_row(i), half * own_keys + lane_column(g, i)),
                   pack(left, right));
      }
    }
    sync_named(pair(), 64);  // the weights of all keys are there
  }

  // The sink joins in; the output leaves through shared memory, in whole lines.
  DEVICE static void finish(const Args& p, Plan& s, std::int64_t t, int first, int count,
                            const float (&top)[2], float (&mass)[2],
                            const float (&output)[own_channels / 8][4]) {
    const int half = warp() % 2;
    UNROLL
    for (int r = 0; r < 2; ++r) {
      mass[r] += shuffle_xor(mass[r], 1);
      mass[r] += shuffle_xor(mass[r], 2);
      if (lane() % 4 == 0) s.mass(own_heads() + lane_row(2 * r), half) = mass[r];
    }
    sync_named(pair(), 64);  // both know their masses
    UNROLL
    for (int r = 0; r < 2; ++r) {
      const int h = own_heads() + lane_row(2 * r);
      float share = 0.f;
      if (h < count) {
        const RowSum sum = with_sink(p.in, first + h, top[r] * ln_two, s.mass(h, 0) + s.mass(h, 1));
        share = sum.share;
        if (half == 0 && lane() % 4 == 0) p.lse(t, first + h) = sum.lse;
      }
      UNROLL
      for (int g = 0; g < own_channels / 8; ++g)
        store_pair(s.query(h, half * own_channels + lane_column(g, 0)),
                   pack(output[g][2 * r] * share, output[g][2 * r + 1] * share));
    }
    sync_named(pair(), 64);  // the output of these heads is there
    for (int h = own_heads() + half; h < own_heads() + 16 && h < count; h += 2) {
      for (int c = lane() * 8; c < p.output.extent(2); c += 256)
        store(p.output(t, first + h, c), load<16>(s.query(h, c)));
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
