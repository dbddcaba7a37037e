// tests/machine/crimes/memory.hpp: races, bounds, values that are not there.
#pragma once
#include "tests/machine/crimes/crimes.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

template <bool honest> struct ReadBeforeWriters : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread()] = thread();
    s.x[64 + thread()] = 0;
    if (honest) sync_block();
    a.out(thread()) = int(s.x[63 - thread()]);
  }
};
template <bool honest> struct WriteBeforeReaders : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread()] = thread();
    sync_block();
    const int v = s.x[63 - thread()];
    if (honest) sync_block();
    s.x[thread()] = v;
    a.out(thread()) = v;
  }
};
// Lanes of a warp do not run in step.
template <bool honest> struct LanesUnordered : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread()] = thread();
    if (honest) sync_warp();
    a.out(thread()) = int(s.x[thread() ^ 1]);
  }
};
// A shuffle exchanges registers; it does not order memory.
template <bool honest> struct ShuffleAsBarrier : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread()] = thread();
    const int other = shuffle_xor(thread(), 1);
    if (honest) sync_warp();
    a.out(thread()) = int(s.x[other]);
  }
};
template <bool honest> struct GlobalTwice : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(honest ? thread() : thread() / 2 * 2) = 1;
    if (!honest) a.out(thread() / 2 * 2 + 1) = 1;
  }
};
// Run with two blocks, which no GPU orders.
template <bool honest> struct BlocksTwice : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    if (thread() < 32 && block() == 0) a.out(thread()) = 1;
    if (thread() >= 32 && (!honest || block() == 1)) a.out(thread()) = 1;
  }
};
template <bool honest> struct BlockReadsOthersSum : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    reduce_add(a.sum(0), 1.f);
    if (block() == 0) a.out(thread()) = 1;
    if (!honest && thread() == 0) a.out(0) = int(a.sum(0));
  }
};
template <bool honest> struct AtomicThenPlain : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() == 0) s.x[0] = 0;
    sync_block();
    reduce_add(s.x[0], 1);
    if (honest) sync_block();
    a.out(thread()) = int(s.x[0]);
  }
};
// The last of two atomics is one's own; the first is not.
template <bool honest> struct OwnAtomicHidesOthers : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() == 0) s.x[0] = 0;
    sync_warp();
    if (thread() == 1) reduce_add(s.x[0], 1);
    const int order = shuffle(0, 1);  // an order in time, not in memory
    if (honest) sync_warp();
    int v = order;
    if (thread() == 2) {
      reduce_add(s.x[0], 1);
      v = s.x[0];
    }
    a.out(thread()) = v;
    a.out(thread() + 32) = 0;
  }
};
template <bool honest> struct OutsideGlobal : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    if (thread() == 63) a.out(thread() + (honest ? 0 : 1)) = 1;
  }
};
template <bool honest> struct OutsideShared : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread() * 2 + (honest ? 0 : 2)] = 1;
    a.out(thread()) = 1;
  }
};
template <bool honest> struct NegativeIndex : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    const int row = thread() == 7 ? -1 : thread();
    a.out(thread()) = int(a.in(honest ? maximum(row, 0) : row));
  }
};
// A wide access at the end of a row would silently continue into the next one.
struct RowPlan {
  Tile<float, 8, 6, Padded<2>> tile;
};
template <bool honest> struct LeavesItsRow : CrimeOf<64, RowPlan> {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() < 8) store(s.tile(thread(), honest ? 0 : 4), Words<16>{{0, 0, 0, 0}});
    a.out(thread()) = 1;
  }
};
template <bool honest> struct Misaligned : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(thread() * 4 + (honest || thread() > 30 ? 0 : 2)));
    commit();
    wait_groups<0>();
    a.out(thread()) = 1;
    a.out(thread() + 32) = 1;
  }
};
template <bool honest> struct SharedIsNotZero : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    if (honest || thread() != 5) s.x[thread()] = 1;
    sync_block();
    a.out(thread()) = int(s.x[(thread() + 1) % 64]);
  }
};
template <bool honest> struct OutputIsNotZero : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    if (honest) a.out(thread()) = 0;
    a.out(thread()) += 1;
  }
};
template <bool honest> struct Unwritten : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    if (honest || thread() < 60) a.out(thread()) = 1;
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
