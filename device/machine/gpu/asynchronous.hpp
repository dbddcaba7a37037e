// device/machine/gpu/asynchronous.hpp: mbarriers, bulk copies and TMA of sm_90.
#pragma once
#include "device/machine/gpu/operations.hpp"

namespace plumbline::device::gpu {

struct Barrier {  // mbarrier
  std::uint64_t word;

  DEVICE void init(int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(word)), "r"(count)
                 : "memory");
  }
  DEVICE void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(word)) : "memory");
  }
  DEVICE void arrive_expect(int bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(word)),
        "r"(bytes)
        : "memory");
  }
  // Arrives when this thread's earlier cp.async have landed; says nothing of its ordinary stores.
  DEVICE void arrive_when_copied() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(word))
                 : "memory");
  }
  DEVICE void wait(int parity) {
    asm volatile(
        "{\n.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@p bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(shared_address(word)),
        "r"(parity)
        : "memory");
  }
};

DEVICE void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// `bytes` (a multiple of 16) from global to shared memory; completes on the barrier.
template <class To, class From>
DEVICE void copy_bulk(To& to, const From& from, int bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(&from), "r"(bytes), "r"(shared_address(barrier.word))
      : "memory");
}

// Written on the host by tensor_map(); a box is one panel: R rows of 64 columns, 128-byte swizzle.
struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

template <class T, int R, int C> DEVICE void copy_tile(Tile<T, R, C, Swizzle128>& to,
                                                       const TensorMap& from, int row, int column,
                                                       Barrier& barrier) {
  UNROLL
  for (int panel = 0; panel < C; panel += 64)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to(0, panel))),
        "l"(&from), "r"(column + panel), "r"(row), "r"(shared_address(barrier.word))
        : "memory");
}
template <class T, int R, int C>
DEVICE void store_tile(const TensorMap& to, int row, int column, Tile<T, R, C, Swizzle128>& from) {
  UNROLL
  for (int panel = 0; panel < C; panel += 64)
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
        "r"(column + panel), "r"(row), "r"(shared_address(from(0, panel)))
        : "memory");
}
DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// All but the last N groups have read their shared memory, which may then be written again.
template <int N> DEVICE void wait_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

template <int N> DEVICE void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> DEVICE void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

}  // namespace plumbline::device::gpu
