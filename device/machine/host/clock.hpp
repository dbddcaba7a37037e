// device/machine/host/clock.hpp
//
// Who knows what: vector clocks. An actor is whatever may touch memory on its own:
//
//   0 .. n-1          the threads of a block
//   n .. 2n-1         the cp.async copies of each thread
//   2n .. 2n+31       bulk copies: one actor per mbarrier, two per thread that stores by TMA
//   2n+32 .. 2n+63    the tensor core of each warp, four per warpgroup
//
// An epoch is a moment of an actor. A thread *knows* an epoch when synchronisation orders it before
// the thread's present. It knows it *fenced* when an async-proxy fence stands on the way as well,
// which tensor cores and bulk copies need to see what ordinary code wrote.
#pragma once
#include <algorithm>
#include <boost/intrusive_ptr.hpp>
#include <cstdint>
#include <vector>

namespace plumbline::device::host {

constexpr int bulk_actors = 32, tensor_actors = 32;

struct Epoch {
  std::uint32_t clock = 0;  // 0: nobody
  std::uint32_t actor = 0;
  friend bool operator==(Epoch, Epoch) = default;
};

// actor -> the latest of its clocks that happened before. Immutable and shared: after a barrier all
// threads hold the same vector, so a barrier costs one vector, not one per thread.
struct Vector {
  explicit Vector(std::size_t actors) : at(actors, 0) {}
  explicit Vector(const std::vector<std::uint32_t>& like) : at(like) {}
  std::vector<std::uint32_t> at;

  // A machine lives on one OS thread, so a plain counter will do.
  mutable long uses = 0;
  friend void intrusive_ptr_add_ref(const Vector* v) { ++v->uses; }
  friend void intrusive_ptr_release(const Vector* v);
};
using Known = boost::intrusive_ptr<const Vector>;

// What one thread knows: a shared vector plus its own two entries, which change more often.
struct Clock {
  std::uint32_t id = 0, threads = 0;
  Known seen, fenced;
  std::uint32_t own = 1, copies = 0;                // of this thread, and of its finished copies
  std::uint32_t own_fenced = 0, copies_fenced = 0;  // the same at the last fence

  Epoch now() const { return {own, id}; }
  bool knows(Epoch e) const {
    if (e.actor == id) return true;  // program order
    std::uint32_t known = seen->at[e.actor];
    if (e.actor == id + threads) known = std::max(copies, known);
    return known >= e.clock;
  }
  bool knows_fenced(Epoch e) const {
    std::uint32_t known = fenced->at[e.actor];  // the fence may be another thread's, on the way
    if (e.actor == id) known = std::max(own_fenced, known);
    if (e.actor == id + threads) known = std::max(copies_fenced, known);
    return known >= e.clock;
  }
};

// What a meeting teaches everybody who waits for it.
struct Lesson {
  Known seen, fenced;
};
Lesson join(const std::vector<Clock>& arrivals);

// a and b together; the same pair in a row is merged once.
class Merger {
 public:
  Known operator()(const Known& a, const Known& b);
  void forget() { a_ = b_ = out_ = nullptr; }

 private:
  Known a_, b_, out_;
};

}  // namespace plumbline::device::host
