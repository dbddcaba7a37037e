// tests/machine/crimes/meetings.hpp: barriers that not everybody reaches, or not as agreed.
#pragma once
#include "tests/machine/crimes/crimes.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

template <bool honest> struct DivergentBarrier : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    if (honest || thread() < 32)
      sync_block();
    else
      sync_block();
  }
};
template <bool honest> struct BarrierNotReached : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    if (!honest && thread() >= 40) return;
    sync_block();
  }
};
template <bool honest> struct CountsDisagree : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    sync_named(1, honest || warp() == 0 ? 64 : 96);
  }
};
template <bool honest> struct CountTooHigh : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    sync_named(1, honest ? 64 : 96);
  }
};
template <bool honest> struct CountOfHalfWarps : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    if (honest || lane() < 24) sync_named(1, honest ? 64 : 48);
  }
};
// Thirty-two threads, but sixteen of each warp: the hardware counts warps.
template <bool honest> struct PartialWarps : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    if (honest ? warp() == 0 : lane() < 16) sync_named(1, 32);
  }
};
template <bool honest> struct ArrivesTwice : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    a.out(thread()) = 1;
    if (warp() == 0) {
      arrive_named(1, 64);
      if (!honest) arrive_named(1, 64);
    } else {
      sync_named(1, 64);
    }
  }
};
// Who only arrives learns nothing.
template <bool honest> struct ArrivesAndReads : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread()] = thread();
    if (warp() == 0 && !honest)
      arrive_named(1, 64);
    else
      sync_named(1, 64);
    a.out(thread()) = int(s.x[63 - thread()]);
  }
};
// One barrier's number for two purposes: half of one meeting completes the other.
template <bool honest> struct WrongNumber : Crime64 {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x[thread()] = thread();
    if (warp() == 0)
      sync_named(1, 64);
    else
      sync_named(honest ? 1 : 2, 64);
    a.out(thread()) = int(s.x[63 - thread()]);
  }
};
template <bool honest> struct ShuffleOfHalfAWarp : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    int v = thread();
    if (honest || lane() < 16) v = shuffle_xor(v, 1);
    a.out(thread()) = v;
  }
};
template <bool honest> struct LanesDoDifferentThings : Crime64 {
  DEVICE static void run(const Args& a, Plan&) {
    int v = thread();
    if (honest || lane() < 16)
      v = shuffle_xor(v, 1);
    else
      v = shuffle_xor(v, 2);
    a.out(thread()) = v;
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
