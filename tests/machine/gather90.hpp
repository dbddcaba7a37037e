// tests/machine/gather90.hpp
//
// The skeleton of sparse attention on sm_90a, without its softmax: out = (Q · Kᵀ) · K over
// gathered rows of K, one block per query, 64 heads. A warpgroup of producers gathers rows by
// cp.async into a ring, a warpgroup of consumers multiplies: by descriptors, and then with A in
// registers and the same tile read as [k][n].
#pragma once
#include "device/machine/machine.hpp"

#if PLUMBLINE_SM90
namespace plumbline::device::PLUMBLINE_SIDE {

template <int Dim> struct Gather90 {
  static constexpr int threads = 256, heads = 64, keys = 64, stages = 2;
  struct Args {
    View<const bf16, 3> query;  // T H D
    View<const bf16, 2> pool;   // rows D
    View<const int, 2> index;   // T slots; -1: an empty slot
    View<float, 3> out;         // T H D
  };
  struct Plan {
    Tile<bf16, heads, Dim, Swizzle128> query;
    Tile<bf16, keys, Dim, Swizzle128> key[stages];
    Tile<int, stages, keys> row;
    Barrier full[stages], empty[stages];
  };

  DEVICE static int tiles(const Args& p) {
    return static_cast<int>((p.index.extent(1) + keys - 1) / keys);
  }

  DEVICE static void produce(const Args& p, Plan& s) {
    for (int tile = 0; tile < tiles(p); ++tile) {
      const int stage = tile % stages;
      if (tile >= stages) s.empty[stage].wait((tile / stages - 1) % 2);  // it has been read
      for (int i = thread() - 128; i < keys * (Dim / 8); i += 128) {
        const int key = i / (Dim / 8), d = i % (Dim / 8) * 8, slot = tile * keys + key;
        const int row = slot < p.index.extent(1) ? int(p.index(block(), slot)) : -1;
        copy_async16(s.key[stage](key, d), p.pool(maximum(row, 0), d), row >= 0);
        if (d == 0) s.row(stage, key) = row;
      }
      s.full[stage].arrive_when_copied();  // speaks for the copies
      s.full[stage].arrive();              // speaks for the row numbers
    }
  }

  DEVICE static void consume(const Args& p, Plan& s) {
    for (int i = thread(); i < heads * (Dim / 8); i += 128)
      copy_async16(s.query(i / (Dim / 8), i % (Dim / 8) * 8),
                   p.query(block(), i / (Dim / 8), i % (Dim / 8) * 8));
    commit();
    wait_groups<0>();    // this thread's part of the query
    sync_named(1, 128);  // everybody's
    Accumulator<Dim> out;
    for (int i = 0; i < Dim / 2; ++i) out[i] = 0.f;
    for (int tile = 0; tile < tiles(p); ++tile) {
      const int stage = tile % stages;
      s.full[stage].wait(tile / stages % 2);  // the rows have landed
      fence_async();  // cp.async writes through the ordinary proxy, wgmma reads through the other
      Accumulator<keys> score;
      wgmma_fence(score);
      UNROLL
      for (int k = 0; k < Dim; k += 16)
        wgmma(score, operand(s.query, 0, k), operand(s.key[stage], 0, k), k > 0);
      wgmma_commit();
      wgmma_wait<0>(score);
      FragmentA weight[keys / 16];
      UNROLL
      for (int i = 0; i < keys / 2; i += 8) {
        UNROLL
        for (int j = i; j < i + 8; ++j)
          if (s.row(stage, j / 4 * 8 + lane() % 4 * 2 + j % 2) < 0) score[j] = 0.f;
        weight[i / 8] = {{pack(score[i], score[i + 1]), pack(score[i + 2], score[i + 3]),
                          pack(score[i + 4], score[i + 5]), pack(score[i + 6], score[i + 7])}};
      }
      wgmma_fence(out, weight);
      UNROLL
      for (int k = 0; k < keys; k += 16)
        wgmma_transposed(out, weight[k / 16], operand_transposed(s.key[stage], k), true);
      wgmma_commit();
      wgmma_wait<0>(out);
      s.empty[stage].arrive();
    }
    UNROLL
    for (int i = 0; i < Dim / 2; ++i)
      p.out(block(), warp() * 16 + lane() / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane() % 4 * 2 + i % 2) =
          out[i];
  }

  DEVICE static void run(const Args& p, Plan& s) {
    if (thread() == 0)
      for (int i = 0; i < stages; ++i) {
        s.full[i].init(256);
        s.empty[i].init(128);
      }
    sync_block();  // the barriers exist
    if (thread() < 128)
      consume(p, s);
    else
      produce(p, s);
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
#endif
