// What moves memory on its own: cp.async, bulk copies with their mbarriers, stores by TMA.
#include <cstring>

#include "device/machine/host/machine.hpp"

namespace plumbline::device::host {
namespace {

void perform(const Copy& copy) {
  if (copy.valid)
    std::memcpy(copy.to, copy.from, 16);
  else
    std::memset(copy.to, 0, 16);
}

constexpr std::uint32_t lane_bit(std::uint32_t actor) { return 1u << actor % 32; }

std::string name_of(const Mbarrier& b) { return "MBARRIER at shared+" + std::to_string(b.offset); }

}  // namespace

void Machine::touch(Region& region, const void* p, int size, Touch kind, Where at) {
  const Clock& clock = me().clock;
  region.touch(p, size, kind, {clock.now(), lane_bit(clock.id), clock, at});
}

// ---- cp.async -----------------------------------------------------------------------------------

void Machine::copy_async16(Region& to, void* p, Region& from, const void* q, bool valid, Where at) {
  Thread& self = me();
  const Epoch epoch{self.copy_tick, static_cast<std::uint32_t>(threads) + self.clock.id};
  if (options.shadow) {
    const Toucher copy{epoch, lane_bit(epoch.actor), self.clock, at};
    if (valid) from.touch(q, 16, Touch::read, copy);
    to.touch(p, 16, Touch::write, copy);
  }
  const Copy copy{static_cast<char*>(p), static_cast<const char*>(q), valid, self.copy_tick};
  if (options.late)
    poison(p, 16);
  else
    perform(copy);
  self.copies.push_back(copy);
  self.last_copy = copy.tick;
}

void Machine::land_copies(Thread& thread, std::uint32_t through) {
  std::size_t landed = 0;
  for (; landed < thread.copies.size() && thread.copies[landed].tick <= through; ++landed)
    if (options.late) perform(thread.copies[landed]);
  thread.copies.erase(thread.copies.begin(),
                      thread.copies.begin() + static_cast<std::ptrdiff_t>(landed));
}

void Machine::commit() {
  Thread& self = me();
  self.groups.push_back(self.copy_tick++);
}

void Machine::wait_groups(std::size_t left) {
  Thread& self = me();
  while (self.groups.size() > left) {
    const std::uint32_t through = self.groups.front();
    self.groups.pop_front();
    land_copies(self, through);
    self.clock.copies = std::max(self.clock.copies, through);
  }
}

// ---- mbarriers ----------------------------------------------------------------------------------

std::uint32_t Machine::new_bulk_actor(std::uint32_t count) {
  if (bulk_in_use_ + count > bulk_actors)
    throw Crime("LIMIT: more than 32 mbarriers and twice the threads that store by TMA");
  bulk_in_use_ += count;
  return 2 * static_cast<std::uint32_t>(threads) + bulk_in_use_ - count;
}

void Machine::init_barrier(void* word, int count, Where at) {
  if (options.shadow) touch(*shared_, word, 8, Touch::write, at);
  const auto offset = static_cast<std::uint32_t>(static_cast<char*>(word) - shared_->base());
  if (mbarriers_.contains(offset)) throw Crime("MBARRIER initialised twice at " + text(at));
  if (count <= 0) throw Crime("MBARRIER at " + text(at) + ": a count of " + std::to_string(count));
  Mbarrier& b = mbarriers_[offset];
  b.offset = offset, b.actor = new_bulk_actor(1);
  b.expected = b.pending = count;
  b.initialiser = me_id();
  b.lesson = {nothing_, nothing_};
}

// To use a barrier is to read its word: init must be ordered before, for bulk copies also fenced.
Mbarrier& Machine::barrier_at(void* word, Where at, bool proxy) {
  const auto offset = static_cast<std::uint32_t>(static_cast<char*>(word) - shared_->base());
  const auto found = mbarriers_.find(offset);
  if (found == mbarriers_.end()) throw Crime("MBARRIER used before init at " + text(at));
  if (options.shadow) {
    const Clock& clock = me().clock;
    const bool fence = proxy && !found->second.published;
    shared_->touch(word, 8, Touch::read,
                   {clock.now(), lane_bit(clock.id), clock, at, fence, false});
  }
  return found->second;
}

void Machine::fence_barrier_init() {
  for (auto& [offset, b] : mbarriers_)
    if (b.initialiser == me_id()) b.published = true;
}

void Machine::fence_async() {
  Clock& clock = me().clock;
  clock.fenced = clock.seen, clock.own_fenced = clock.own, clock.copies_fenced = clock.copies;
  ++clock.own;
}

void Machine::arrived(Mbarrier& b, const Clock& clock, Where at) {
  if (b.pending == 0)
    throw Crime(name_of(b) + " OVERRUN: more arrivals than its count of " +
                std::to_string(b.expected) + " at " + text(at));
  b.clocks.push_back(clock);
  --b.pending;
}

// A phase ends when all have arrived and every announced byte has landed.
void Machine::advance(Mbarrier& b) {
  if (b.pending || b.bytes) return;
  if (options.shadow) {
    b.lesson = join(b.clocks);
    auto* seen = new Vector(b.lesson.seen->at);
    b.lesson.seen = seen;
    std::uint32_t landed = b.issued;
    for (const std::uint32_t tick : b.outstanding) landed = std::min(landed, tick - 1);
    seen->at[b.actor] = std::max(seen->at[b.actor], landed);
  }
  b.clocks.clear(), ++b.phase, b.pending = b.expected;
  for (Thread* t : b.waiting) wake(t);
  b.waiting.clear();
}

void Machine::arrive(void* word, int bytes, Where at) {
  Mbarrier& b = barrier_at(word, at, false);
  arrived(b, me().clock, at);
  ++me().clock.own;
  b.bytes += bytes;
  advance(b);
}

// Speaks for this thread's copies alone: its ordinary stores are not published by it.
void Machine::arrive_when_copied(void* word, Where at) {
  Mbarrier* const b = &barrier_at(word, at, false);
  Thread* const self = &me();
  Clock clock = self->clock;
  clock.seen = clock.fenced = nothing_;
  clock.own = clock.own_fenced = clock.copies_fenced = 0;
  clock.copies = self->copy_tick++;
  landings_.push_back({b, [this, b, self, clock, at] {
                         land_copies(*self, clock.copies);
                         arrived(*b, clock, at);
                       }});
  if (!options.late) deliver(landings_.size() - 1);
}

void Machine::wait_barrier(void* word, int parity, Where at) {
  Mbarrier& b = barrier_at(word, at, false);
  while (static_cast<int>(b.phase & 1) == (parity & 1)) {
    b.waiting.push_back(&me());
    wait("mbarrier", b.offset, at);
  }
  if (!options.shadow) return;
  Clock& clock = me().clock;
  clock.seen = merge_seen_(clock.seen, b.lesson.seen);
  clock.fenced = merge_fenced_(clock.fenced, b.lesson.fenced);
}

void Machine::deliver(std::size_t k) {
  const Landing landing = std::move(landings_[k]);
  landings_.erase(landings_.begin() + static_cast<std::ptrdiff_t>(k));
  landing.land();
  advance(*landing.barrier);
}

// ---- bulk copies --------------------------------------------------------------------------------

void Machine::copy_bulk(std::vector<Piece> pieces, void* word, Where at) {
  Mbarrier* const b = &barrier_at(word, at, true);
  const Clock& clock = me().clock;
  const std::uint32_t tick = ++b->issued;
  b->outstanding.push_back(tick);
  for (const Piece& piece : pieces) {
    if (options.shadow) {
      const Toucher copy{{tick, b->actor}, lane_bit(b->actor), clock, at, true};
      if (piece.source) piece.from->touch(piece.source, 16, Touch::read, copy);
      shared_->touch(piece.target, 16, Touch::write, copy);
    }
    poison(piece.target, 16);
  }
  landings_.push_back({b, [b, tick, pieces = std::move(pieces)] {
                         for (const Piece& piece : pieces) {
                           if (piece.source)
                             std::memcpy(piece.target, piece.source, 16);
                           else
                             std::memset(piece.target, 0, 16);
                         }
                         std::erase(b->outstanding, tick);
                         b->bytes -= static_cast<std::int64_t>(16 * pieces.size());
                       }});
  if (!options.late) deliver(landings_.size() - 1);
}

void Machine::store_bulk(std::vector<Piece> pieces, Where at) {
  Thread& self = me();
  if (self.store_actor == 0) self.store_actor = new_bulk_actor(2);
  const std::uint32_t tick = self.store_tick + 1;
  for (const Piece& piece : pieces) {
    if (!options.shadow) break;
    const auto copy = [&](std::uint32_t actor) {
      return Toucher{{tick, actor}, lane_bit(actor), self.clock, at, true};
    };
    shared_->touch(piece.source, 16, Touch::read, copy(self.store_actor));
    piece.from->touch(piece.target, 16, Touch::write, copy(self.store_actor + 1));
  }
  const auto perform = [pieces = std::move(pieces)] {
    for (const Piece& piece : pieces) std::memcpy(piece.target, piece.source, 16);
  };
  if (!options.late) perform();
  self.stores.push_back({perform, tick});
}

void Machine::commit_stores() {
  Thread& self = me();
  self.store_groups.push_back(++self.store_tick);
}

// The shared memory has been read; when the global memory is written, this says nothing about.
void Machine::wait_stores(std::size_t left) {
  Thread& self = me();
  while (self.store_groups.size() > left) {
    const std::uint32_t through = self.store_groups.front();
    self.store_groups.pop_front();
    while (!self.stores.empty() && self.stores.front().tick <= through) {
      if (options.late) self.stores.front().perform();
      self.stores.erase(self.stores.begin());
    }
    if (!options.shadow || self.store_actor == 0) continue;
    auto* seen = new Vector(self.clock.seen->at);
    self.clock.seen = seen;
    seen->at[self.store_actor] = std::max(seen->at[self.store_actor], through);
  }
}

void poison(void* p, std::size_t bytes) {
  constexpr unsigned char pattern[] = {0xF7, 0x7F};
  auto* const c = static_cast<unsigned char*>(p);
  for (std::size_t i = 0; i < bytes; ++i) c[i] = pattern[i % 2];
}

}  // namespace plumbline::device::host
