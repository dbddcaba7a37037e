// tests/machine/product90.hpp
//
// C = A · Bᵀ for a 64 x 64 tile on sm_90a: a producer warp fills a ring by TMA, a warpgroup
// multiplies with wgmma, and the result leaves by TMA as bf16.
#pragma once
#include "device/machine/machine.hpp"

#if PLUMBLINE_SM90
namespace plumbline::device::PLUMBLINE_SIDE {

struct Product90 {
  static constexpr int threads = 160, stages = 2, step = 64;
  struct Args {
    TensorMap a, b;  // [64][depth], boxes of 64 rows
    TensorMap c;     // [64][64]
    int depth;
  };
  struct Plan {
    Tile<bf16, 64, step, Swizzle128> a[stages], b[stages];
    Tile<bf16, 64, 64, Swizzle128> c;
    Barrier full[stages], empty[stages];
  };
  static_assert(sizeof(Plan) == 5 * 8192 + 1024, "the plan is the same on both sides");

  DEVICE static void produce(const Args& p, Plan& s, int steps) {
    for (int i = 0; i < steps; ++i) {
      const int stage = i % stages;
      if (i >= stages) s.empty[stage].wait((i / stages - 1) % 2);  // the tensor cores have read it
      s.full[stage].arrive_expect(2 * 64 * step * 2);
      copy_tile(s.a[stage], p.a, 0, i * step, s.full[stage]);
      copy_tile(s.b[stage], p.b, 0, i * step, s.full[stage]);
    }
  }

  DEVICE static void consume(const Args& p, Plan& s, int steps) {
    Accumulator<64> c;
    for (int i = 0; i < 32; ++i) c[i] = 0.f;
    for (int i = 0; i < steps; ++i) {
      const int stage = i % stages;
      s.full[stage].wait(i / stages % 2);  // the tiles have landed
      wgmma_fence(c);  // the zeros above and the wait below are ordinary code for these registers
      UNROLL
      for (int k = 0; k < step; k += 16)
        wgmma(c, operand(s.a[stage], 0, k), operand(s.b[stage], 0, k), true);
      wgmma_commit();
      wgmma_wait<0>(c);
      if (lane() == 0) s.empty[stage].arrive();
    }
    UNROLL
    for (int i = 0; i < 32; i += 2)
      store_pair(s.c(warp() * 16 + lane() / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane() % 4 * 2),
                 pack(c[i], c[i + 1]));
    fence_async();       // the store by TMA reads what was just written
    sync_named(1, 128);  // all four warps have written
    if (thread() == 0) {
      store_tile(p.c, 0, 0, s.c);
      commit_stores();
      wait_stores<0>();  // shared memory is gone when the block is
    }
  }

  DEVICE static void run(const Args& p, Plan& s) {
    if (thread() == 0) {
      for (int i = 0; i < stages; ++i) {
        s.full[i].init(1);
        s.empty[i].init(4);
      }
      fence_barrier_init();
    }
    sync_block();  // the barriers exist
    if (warp() == 4) {
      if (lane() == 0) produce(p, s, p.depth / step);
    } else {
      consume(p, s, p.depth / step);
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
#endif
