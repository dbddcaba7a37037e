// tests/machine/crimes/tensor.hpp: tensor cores of a warpgroup, tiles by TMA.
#pragma once
#include "tests/machine/crimes/crimes.hpp"

#if PLUMBLINE_SM90
namespace plumbline::device::PLUMBLINE_SIDE {

struct TensorArgs {
  View<int, 1> out;  // 64
  TensorMap map;     // bf16 [64][64], boxes of 64 rows
  TensorMap narrow;  // the same matrix in boxes of 32 rows
  TensorMap target;  // bf16 [64][64] to be stored
};
struct TensorPlan {
  Tile<bf16, 64, 64, Swizzle128> x, y;
  Barrier full;
};
struct Tensor {
  static constexpr int threads = 128;
  using Args = TensorArgs;
  using Plan = TensorPlan;

  DEVICE static void fill(Plan& s) {
    for (int i = thread(); i < 64 * 64; i += threads) {
      s.x(i / 64, i % 64) = to_bf16(float(i % 7));
      s.y(i / 64, i % 64) = to_bf16(float(i % 5));
    }
  }
  DEVICE static void filled(Plan& s) {
    fill(s);
    fence_async();
    sync_block();
  }
  DEVICE static void write(const Args& a, float v) {
    if (thread() < 64) a.out(thread()) = int(v);
  }
  // The first 16 of 64 terms.
  DEVICE static void product(Accumulator<64>& d, Plan& s, bool add = false) {
    wgmma(d, operand(s.x, 0, 0), operand(s.y, 0, 0), add);
    wgmma_commit();
  }
};

template <bool honest> struct NoProxyFence : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    fill(s);
    if (honest) fence_async();
    sync_block();
    Accumulator<64> d;
    wgmma_fence(d);
    product(d, s);
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct FenceBeforeStores : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    if (!honest) fence_async();
    fill(s);
    if (honest) fence_async();
    sync_block();
    Accumulator<64> d;
    wgmma_fence(d);
    product(d, s);
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct AccumulatorTooEarly : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    product(d, s);
    if (honest) wgmma_wait<0>(d);
    write(a, d[0]);
    wgmma_wait<0>(d);
  }
};
template <bool honest> struct NoWgmmaFence : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    for (int i = 0; i < 32; ++i) d[i] = 1.f;
    if (honest) wgmma_fence(d);
    product(d, s, true);
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct FragmentAfterFence : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    FragmentA p[1] = {{{pack(1.f, 2.f), pack(1.f, 2.f), pack(3.f, 4.f), pack(3.f, 4.f)}}};
    if (honest) wgmma_fence(d, p);
    wgmma(d, p[0], operand(s.y, 0, 0), false);
    wgmma_commit();
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct OperandOverwritten : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    product(d, s);
    if (!honest && thread() < 64) s.x(thread(), 0) = to_bf16(1.f);
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
// A warp's wait says nothing about the tensor cores of the other three.
template <bool honest> struct OneWarpSpeaksForFour : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    product(d, s);
    wgmma_wait<0>(d);
    if (honest) sync_block();
    if (thread() == 0) s.y(0, 0) = to_bf16(1.f);
    write(a, d[0]);
  }
};
template <bool honest> struct OneProductTooFew : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d, e;
    wgmma_fence(d, e);
    product(d, s);
    product(e, s);
    if (honest)
      wgmma_wait<0>(d, e);
    else
      wgmma_wait<1>(d, e);
    write(a, e[0]);
    wgmma_wait<0>(d, e);
  }
};
template <bool honest> struct ProductNotCommitted : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    wgmma(d, operand(s.x, 0, 0), operand(s.y, 0, 0), false);
    if (honest) wgmma_commit();
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct OperandsDiffer : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    wgmma(d, operand(s.x, 0, honest ? 0 : warp() / 2 * 16), operand(s.y, 0, 0), false);
    wgmma_commit();
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct HalfAWarpgroup : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    write(a, 0.f);
    if (!honest && warp() >= 2) return;
    Accumulator<64> d;
    wgmma_fence(d);
    product(d, s);
    wgmma_wait<0>(d);
  }
};
// 64 columns of a tile that starts at its last row: the descriptor leads out of shared memory.
template <bool honest> struct DescriptorLeadsOutside : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    Accumulator<64> d;
    wgmma_fence(d);
    wgmma(d, operand(s.x, 0, 0), operand(s.y, honest ? 0 : 56, 0), false);
    wgmma_commit();
    wgmma_wait<0>(d);
    write(a, d[0]);
  }
};
template <bool honest> struct BoxOfOtherSize : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() == 0) {
      s.full.init(1);
      fence_barrier_init();
    }
    sync_block();
    if (thread() == 0) {
      s.full.arrive_expect(64 * 64 * 2);
      copy_tile(s.x, honest ? a.map : a.narrow, 0, 0, s.full);
    }
    s.full.wait(0);
    write(a, to_float(s.x(thread() % 64, 0)));
  }
};
template <bool honest> struct StoreWithoutFence : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    fill(s);
    if (honest) fence_async();
    sync_block();
    if (thread() == 0) {
      store_tile(a.target, 0, 0, s.x);
      commit_stores();
      wait_stores<0>();
    }
    write(a, 0.f);
  }
};
template <bool honest> struct StoreOverwritten : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    if (thread() == 0) {
      store_tile(a.target, 0, 0, s.x);
      commit_stores();
      if (honest) wait_stores<0>();
    }
    sync_block();
    s.x(thread() / 2, thread() % 2) = to_bf16(0.f);
    if (thread() == 0) wait_stores<0>();
    write(a, 0.f);
  }
};
template <bool honest> struct StoreOutlivesItsBlock : Tensor {
  DEVICE static void run(const Args& a, Plan& s) {
    filled(s);
    if (thread() == 0) {
      store_tile(a.target, 0, 0, s.x);
      commit_stores();
      if (honest) wait_stores<0>();
    }
    write(a, 0.f);
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
#endif
