// device/csa_attention/fast90.cuh
//
// csa_attention forward for sm_90a; roofline at the top of fast.cuh. wgmma reads keys and queries where
// they lie, so shared memory no longer bounds the products: a tile of 64 keys is read twice for scores
// and twice for values, 4·64 KiB in 2048 cycles of 128 B, during 64·64·2·1024 FLOP = 2048 cycles.
//
// Three warpgroups. 64 x 512 sums are half of a multiprocessor's registers, so two consumers have 256
// channels each, 128 registers a thread. Scores they share by keys: each works out one tile of a pair
// and gives its weights to the other through shared memory, so no score is computed twice. The third
// gathers: Hopper has no TMA that gathers rows, so it is cp.async, 16 bytes a lane, which frees
// consumers from addresses and waits.
//
// Shared memory (one block a multiprocessor): query 64 KiB, two tiles of keys 128, weights 16. A third
// tile has no room; the gather of a tile begins when its values have been used, while the products of
// the other tile of the pair go on. That this hides the gather is a prediction: no run on a GPU yet.
//
// Unverified on hardware: descriptors, arrive_when_copied (noinc), that a proxy fence by the consumer
// is enough for rows that another thread's cp.async has written.
#pragma once
#include "device/pieces/attention.cuh"

#if PLUMBLINE_SM90
namespace plumbline::device::PLUMBLINE_SIDE {

template <int Width> struct CsaForward90 {
  static constexpr int threads = 384, heads = 64, keys = 64, half = Width / 2;
  static constexpr int producer = 256;  // its first thread

  struct Args {
    AttentionViews<bf16> in;
    View<bf16, 3> output;  // B·T H D
    View<float, 2> lse;    // B·T H
  };
  struct Plan {
    Tile<bf16, heads, half, Swizzle128> query[2];   // by channels; at last, the output on its way
    Tile<bf16, keys, half, Swizzle128> key[2][2];   // of each tile of the pair, by channels
    Tile<bf16, heads, keys, Swizzle128> weight[2];  // of each tile
    Tile<int, 2, keys> row;                         // −1: no key
    Tile<float, heads, 2> peak, mass;               // of each tile
    Barrier full[2], empty[2];
  };
  static_assert(Width != 512 || sizeof(Plan) == 215040, "the same on both sides");

  DEVICE static int pairs(const KeyList<bf16>& list) {
    return (list.count() + 2 * keys - 1) / (2 * keys);
  }

  DEVICE static void produce(const KeyList<bf16>& list, Plan& s) {
    const AttentionViews<bf16>& a = list.a;
    for (int tile = 0; tile < 2 * pairs(list); ++tile) {
      const int stage = tile % 2;
      if (tile >= 2)
        s.empty[stage].wait((tile / 2 - 1) % 2);  // both consumers have used its values
      for (int j = warp() - producer / 32; j < keys; j += 4) {
        const int number = tile * keys + j, row = list.at(number);
        const View<const bf16, 4>& pool = list.from_near(number) ? a.near_key : a.far_key;
        for (int c = lane() * 8; c < Width; c += 256) {
          if (row >= 0 && c < a.query.extent(2))
            copy_async16(s.key[stage][c / half](j, c % half), pool(list.b, row, 0, c));
          else  // zeros, whatever is named; a pool may be empty
            copy_async16(s.key[stage][c / half](j, c % half), a.query(list.t, 0, 0), false);
        }
        if (lane() == 0) s.row(stage, j) = row;
      }
      s.full[stage].arrive_when_copied();  // speaks for the copies
      s.full[stage].arrive();              // speaks for the row numbers
    }
  }

  DEVICE static void consume(const Args& p, const KeyList<bf16>& list, Plan& s, int first,
                             int count) {
    const AttentionViews<bf16>& a = p.in;
    for (int h = warp(); h < heads; h += 8) {
      for (int c = lane() * 8; c < Width; c += 256) {
        const bool there = h < count && c < a.query.extent(2);
        copy_async16(s.query[c / half](h, c % half),
                     a.query(list.t, there ? first + h : 0, there ? c : 0), there);
      }
    }
    commit();
    wait_groups<0>();    // this thread's part of the query
    sync_named(1, 256);  // both consumers'

    const int own = thread() / 128;  // tile of the pair, and half of the channels
    const float scale = a.scale / ln_two;
    Accumulator<half> output;
    UNROLL
    for (int i = 0; i < half / 2; ++i) output[i] = 0.f;
    float top[2] = {-infinity(), -infinity()}, mass[2] = {};
    for (int pair = 0; pair < pairs(list); ++pair) {
      s.full[own].wait(pair % 2);  // its rows have landed
      fence_async();  // cp.async writes by the ordinary proxy, wgmma reads by the other
      Accumulator<keys> score;
      wgmma_fence(score);
      UNROLL
      for (int k = 0; k < Width; k += 16)
        wgmma(score, operand(s.query[k / half], 0, k % half),
              operand(s.key[own][k / half], 0, k % half), k > 0);
      wgmma_commit();
      wgmma_wait<0>(score);

      find_peaks(s, own, scale, score);
      sync_named(1, 256);  // both know their largest scores
      find_weights(s, own, score, top, mass, output);
      fence_async();       // stores write by the ordinary proxy
      sync_named(1, 256);  // the weights of both tiles are there

      wgmma_fence(output);
      UNROLL
      for (int k = 0; k < keys; k += 16)
        wgmma_transposed(output, operand(s.weight[0], 0, k), operand_transposed(s.key[0][own], k),
                         true);
      wgmma_commit();
      UNROLL
      for (int k = 0; k < keys; k += 16)
        wgmma_transposed(output, operand(s.weight[1], 0, k), operand_transposed(s.key[1][own], k),
                         true);
      wgmma_commit();
      wgmma_wait<1>();      // the first tile's products
      s.empty[0].arrive();  // it may be filled again while the second is worked on
      wgmma_wait<0>(output);
      s.empty[1].arrive();
    }
    finish(p, s, list.t, first, count, top, mass, output);
  }

  // Row r of a thread's two, and where its sum i lies.
  DEVICE static int head(int r) { return warp() % 4 * 16 + lane() / 4 + r * 8; }
  DEVICE static int column(int i) { return i / 4 * 8 + lane() % 4 * 2 + i % 2; }
  DEVICE static bool seen(Plan& s, int tile, int i) { return s.row(tile, column(i)) >= 0; }

  DEVICE static void find_peaks(Plan& s, int own, float scale, Accumulator<keys>& score) {
    float peak[2] = {-infinity(), -infinity()};
    UNROLL
    for (int i = 0; i < keys / 2; ++i) {
      score[i] *= scale;
      if (seen(s, own, i)) peak[i / 2 % 2] = maximum(peak[i / 2 % 2], score[i]);
    }
    UNROLL
    for (int r = 0; r < 2; ++r) {
      peak[r] = maximum(peak[r], shuffle_xor(peak[r], 1));
      peak[r] = maximum(peak[r], shuffle_xor(peak[r], 2));
      if (lane() % 4 == 0) s.peak(head(r), own) = peak[r];
    }
  }

  DEVICE static void find_weights(Plan& s, int own, Accumulator<keys>& score, float (&top)[2],
                                  float (&mass)[2], Accumulator<half>& output) {
    float shrink[2];
    UNROLL
    for (int r = 0; r < 2; ++r) {
      const float next =
          maximum(top[r], maximum(float(s.peak(head(r), 0)), float(s.peak(head(r), 1))));
      shrink[r] = next == top[r] ? 1.f : fast_exp2(top[r] - next);
      top[r] = next, mass[r] *= shrink[r];
    }
    // The maximum seldom moves after the first tiles: then 128 multiplications can be left out.
    if (ballot(shrink[0] != 1.f || shrink[1] != 1.f)) {
      UNROLL
      for (int i = 0; i < half / 2; ++i) output[i] *= shrink[i / 2 % 2];
    }
    UNROLL
    for (int i = 0; i < keys / 2; i += 2) {
      const int r = i / 2 % 2;
      const float left = seen(s, own, i) ? fast_exp2(score[i] - top[r]) : 0.f,
                  right = seen(s, own, i + 1) ? fast_exp2(score[i + 1] - top[r]) : 0.f;
      mass[r] += left + right;
      store_pair(s.weight[own](head(r), column(i)), pack(left, right));
    }
  }

  // The sink joins in; the output leaves through shared memory, in whole lines.
  DEVICE static void finish(const Args& p, Plan& s, std::int64_t t, int first, int count,
                            const float (&top)[2], float (&mass)[2], Accumulator<half>& output) {
    const int own = thread() / 128;
    UNROLL
    for (int r = 0; r < 2; ++r) {
      mass[r] += shuffle_xor(mass[r], 1);
      mass[r] += shuffle_xor(mass[r], 2);
      if (lane() % 4 == 0) s.mass(head(r), own) = mass[r];
    }
    sync_named(1, 256);  // both know their masses, and no query is read any more
    float share[2] = {};
    UNROLL
    for (int r = 0; r < 2; ++r) {
      const int h = head(r);
      if (h >= count) continue;
      const RowSum sum = with_sink(p.in, first + h, top[r] * ln_two, s.mass(h, 0) + s.mass(h, 1));
      share[r] = sum.share;
      if (own == 0 && lane() % 4 == 0) p.lse(t, first + h) = sum.lse;
    }
    UNROLL
    for (int i = 0; i < half / 2; i += 2) {
      const int r = i / 2 % 2;
      store_pair(s.query[own](head(r), column(i)),
                 pack(output[i] * share[r], output[i + 1] * share[r]));
    }
    sync_named(2 + own, 128);  // the output of these channels is there
    for (int h = warp() % 4; h < heads && h < count; h += 4) {
      for (int c = lane() * 8; c < half && own * half + c < p.output.extent(2); c += 256)
        store(p.output(t, first + h, own * half + c), load<16>(s.query[own](h, c)));
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
    const KeyList<bf16> list(p.in, block(0));
    const int first = block(1) * heads,
              count = minimum(heads, static_cast<int>(p.in.query.extent(1)) - first);
    if (!list.any()) return without_keys(p, list, first, count);
    if (thread() == 0) {
      for (int i = 0; i < 2; ++i) {
        s.full[i].init(2 * 128);  // each producer twice
        s.empty[i].init(2 * 128);
      }
    }
    sync_block();  // the barriers exist
    if (thread() < producer) {
      registers_up<216>();
      consume(p, list, s, first, count);
    } else {
      registers_down<72>();
      produce(list, s);
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
#endif
