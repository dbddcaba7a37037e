// tests/machine/crimes/copies.hpp: cp.async, mbarriers, bulk copies.
#pragma once
#include "tests/machine/crimes/crimes.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

template <bool honest> struct CopyNotWaited : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(thread() * 4));
    commit();
    if (honest) wait_groups<0>();
    a.out(thread()) = int(s.f[thread() * 4]);
    a.out(thread() + 32) = 0;
    wait_groups<0>();
  }
};
template <bool honest> struct CopyNotCommitted : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(thread() * 4));
    if (honest) commit();
    wait_groups<0>();
    a.out(thread()) = int(s.f[thread() * 4]);
    a.out(thread() + 32) = 0;
  }
};
template <bool honest> struct CopyWaitedByOthersOnly : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(thread() * 4));
    commit();
    wait_groups<0>();
    if (honest) sync_warp();
    a.out(thread()) = int(s.f[124 - thread() * 4]);
    a.out(thread() + 32) = 0;
  }
};
template <bool honest> struct OneGroupTooFew : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    for (int i = 0; i < 2; ++i) {
      if (thread() < 16) copy_async16(s.f[thread() * 8 + i * 4], a.in(i * 4));
      commit();
    }
    if (honest)
      wait_groups<0>();
    else
      wait_groups<1>();
    sync_warp();
    a.out(thread()) = int(s.f[thread() % 16 * 8 + 4]);
    a.out(thread() + 32) = 0;
    wait_groups<0>();
  }
};
template <bool honest> struct WritesUnderACopy : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(thread() * 4));
    commit();
    if (honest) wait_groups<0>();
    s.f[thread() * 4] = 1.f;
    wait_groups<0>();
    a.out(thread()) = int(s.f[thread() * 4]);
    a.out(thread() + 32) = 0;
  }
};
// Two copies of one thread land in any order.
template <bool honest> struct CopiesOfOneTarget : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(0));
    if (honest) {
      commit();
      wait_groups<0>();
    }
    copy_async16(s.f[thread() * 4], a.in(4));
    commit();
    wait_groups<0>();
    a.out(thread()) = int(s.f[thread() * 4]);
    a.out(thread() + 32) = 0;
  }
};
template <bool honest> struct CopyOutlivesItsBlock : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    copy_async16(s.f[thread() * 4], a.in(thread() * 4));
    commit();
    if (honest) wait_groups<0>();
    a.out(thread()) = 1;
    a.out(thread() + 32) = 0;
  }
};
// An invalid copy does not read its source, but the address is computed all the same.
template <bool honest> struct SourceNotClamped : Crime32 {
  DEVICE static void run(const Args& a, Plan& s) {
    const int at = thread() * 4 + 64;
    copy_async16(s.f[thread() * 4], a.in(honest ? minimum(at, 124) : at), at < 128);
    commit();
    wait_groups<0>();
    a.out(thread()) = int(s.f[thread() * 4]);
    a.out(thread() + 32) = 0;
  }
};

#if PLUMBLINE_SM90
struct BulkPlan {
  Tile<float, 2, 64> x;
  Barrier full, empty;
};
using Bulk = CrimeOf<64, BulkPlan>;

DEVICE void start(BulkPlan& s, int fulls, int empties) {
  if (thread() == 0) {
    s.full.init(fulls);
    s.empty.init(empties);
    fence_barrier_init();
  }
  sync_block();
}

template <bool honest> struct WrongParity : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, 1, 1);
    if (thread() == 0) {
      s.full.arrive_expect(256);
      copy_bulk(s.x(0, 0), a.in(0), 256, s.full);
    }
    s.full.wait(honest ? 0 : 1);
    a.out(thread()) = int(s.x(0, thread()));
    s.full.wait(0);
  }
};
template <bool honest> struct WrongBytes : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, 1, 1);
    if (thread() == 0) {
      s.full.arrive_expect(honest ? 256 : 320);
      copy_bulk(s.x(0, 0), a.in(0), 256, s.full);
    }
    s.full.wait(0);
    a.out(thread()) = int(s.x(0, thread()));
  }
};
template <bool honest> struct RefillBeforeRead : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, 1, 64);
    for (int i = 0; i < 2; ++i) {
      if (thread() == 0) {
        if (honest && i) s.empty.wait(0);
        s.full.arrive_expect(256);
        copy_bulk(s.x(0, 0), a.in(i * 64), 256, s.full);
      }
      s.full.wait(i);
      a.out(thread()) = int(s.x(0, thread()));
      s.empty.arrive();
    }
  }
};
template <bool honest> struct BarrierNotShared : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() == 0) s.full.init(64);
    if (honest) sync_block();
    s.full.arrive();
    s.full.wait(0);
    a.out(thread()) = 1;
  }
};
// The copy engine is another proxy; it must be told of the barrier.
template <bool honest> struct BarrierNotPublished : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() == 0) {
      s.full.init(1);
      if (honest) fence_barrier_init();
    }
    sync_block();
    if (thread() == 0) {
      s.full.arrive_expect(256);
      copy_bulk(s.x(0, 0), a.in(0), 256, s.full);
    }
    s.full.wait(0);
    a.out(thread()) = int(s.x(0, thread()));
  }
};
// fence_barrier_init speaks of barriers, not of data.
template <bool honest> struct BulkOverPlainStore : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    s.x(0, thread()) = 0.f;
    if (honest) fence_async();
    start(s, 1, 1);
    if (thread() == 0) {
      s.full.arrive_expect(256);
      copy_bulk(s.x(0, 0), a.in(0), 256, s.full);
    }
    s.full.wait(0);
    a.out(thread()) = int(s.x(0, thread()));
  }
};
template <bool honest> struct TooManyArrivals : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, honest ? 64 : 63, 1);
    if (thread() == 0)
      s.full.arrive_expect(256);
    else
      s.full.arrive();
    sync_block();  // all have arrived, the bytes have not
    if (thread() == 0) copy_bulk(s.x(0, 0), a.in(0), 256, s.full);
    s.full.wait(0);
    a.out(thread()) = int(s.x(0, thread()));
  }
};
template <bool honest> struct InitTwice : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    if (thread() == 0) {
      s.full.init(64);
      if (!honest) s.full.init(64);
    }
    sync_block();
    a.out(thread()) = 1;
  }
};
template <bool honest> struct BulkOutlivesItsBlock : Bulk {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, 1, 1);
    if (thread() == 0) {
      s.full.arrive_expect(256);
      copy_bulk(s.x(0, 0), a.in(0), 256, s.full);
      if (honest) s.full.wait(0);
    }
    a.out(thread()) = 1;
  }
};
// Arriving when copied speaks of the copies; the row numbers beside them need an arrival of their
// own.
template <bool honest> struct CopiesSpeakForStores : CrimeOf<64, BulkPlan> {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, honest ? 64 : 32, 1);
    if (warp() == 0) {
      if (thread() < 16) copy_async16(s.x(0, thread() * 4), a.in(thread() * 4));
      s.x(1, thread()) = 5.f;
      s.full.arrive_when_copied();
      if (honest) s.full.arrive();
      a.out(thread()) = 1;
    } else {
      s.full.wait(0);
      a.out(thread()) = int(s.x(0, lane())) + int(s.x(1, lane()));
    }
  }
};
// Its twin: with cp.async alone the plain arrival says nothing of copies still under way.
template <bool honest> struct ArrivesBeforeCopied : CrimeOf<64, BulkPlan> {
  DEVICE static void run(const Args& a, Plan& s) {
    start(s, 32, 1);
    if (warp() == 0) {
      copy_async16(s.x(thread() / 16, thread() % 16 * 4), a.in(thread() * 4));
      if (honest) {
        s.full.arrive_when_copied();
      } else {
        commit();
        s.full.arrive();
        wait_groups<0>();
      }
      a.out(thread()) = 1;
    } else {
      s.full.wait(0);
      a.out(thread()) = int(s.x(0, lane()));
    }
  }
};
#endif

}  // namespace plumbline::device::PLUMBLINE_SIDE
