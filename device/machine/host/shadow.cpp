#include "device/machine/host/shadow.hpp"

#include <bit>

namespace plumbline::device::host {
namespace {

constexpr std::uint32_t set_mark = ~0u;  // as an actor: the clock is 1 + the number of a set

bool is_set(Epoch e) { return e.actor == set_mark; }

const char* name_of(Touch touch) {
  return touch == Touch::read ? "read" : touch == Touch::write ? "write" : "atomic";
}

}  // namespace

std::string describe_actor(std::uint32_t actor, std::uint32_t threads) {
  const auto number = [](std::uint32_t k) { return std::to_string(k); };
  if (actor < threads) return "thread " + number(actor);
  if (actor < 2 * threads) return "an asynchronous copy of thread " + number(actor - threads);
  if (actor < 2 * threads + bulk_actors) return "bulk copy " + number(actor - 2 * threads);
  return "the tensor core of warp " + number(actor - 2 * threads - bulk_actors);
}

Region::Region(std::string name, Role role, void* base, std::size_t bytes, std::size_t element)
    : name_(std::move(name)),
      role_(role),
      base_(static_cast<char*>(base)),
      bytes_(bytes),
      element_(element),
      lead_(reinterpret_cast<std::uintptr_t>(base) % 16) {
  if (role_ == Role::input) return;  // nobody may write it, so nothing can race
  cells_.resize((lead_ + bytes_ + 15) / 16);
  split_.assign(cells_.size(), 0);
  for (Cell& cell : cells_) cell.valid = role_ == Role::accumulator;
}

std::string Region::place(std::size_t byte) const {
  if (role_ == Role::shared) return name_ + "+" + std::to_string(byte);
  return name_ + "[" + std::to_string(byte / element_) + "]";
}

void Region::touch(const void* p, int size, Touch touch, const Toucher& who) {
  if (role_ == Role::input) {
    if (touch == Touch::read) return;
    throw Crime("WRITE to input " + name_ + " at " + text(who.at));
  }
  const auto from = static_cast<std::size_t>(static_cast<const char*>(p) - base_) + lead_;
  const std::size_t end = from + static_cast<std::size_t>(size);
  if (size == 16 && from % 16 == 0) {
    const std::size_t granule = from / 16;
    if (split_[granule] == 0) return visit(cells_[granule], from - lead_, touch, who);
    auto& pieces = pieces_[split_[granule] - 1];
    for (std::size_t i = 0; i < 8; ++i) visit(pieces[i], from + 2 * i - lead_, touch, who);
    if (touch != Touch::write) return;
    cells_[granule] = pieces[0];  // all eight are alike now
    spare_pieces_.push_back(split_[granule] - 1);
    split_[granule] = 0;
    return;
  }
  for (std::size_t cell = from / 2; cell < (end + 1) / 2; ++cell)
    visit(pieces_of(cell / 8)[cell % 8], 2 * cell - std::min(2 * cell, lead_), touch, who);
}

std::array<Region::Cell, 8>& Region::pieces_of(std::size_t granule) {
  if (split_[granule] == 0) {
    std::uint32_t k;
    if (spare_pieces_.empty()) {
      k = static_cast<std::uint32_t>(pieces_.size());
      pieces_.emplace_back();
    } else {
      k = spare_pieces_.back();
      spare_pieces_.pop_back();
    }
    refresh(cells_[granule]);
    pieces_[k].fill(cells_[granule]);
    for (std::size_t i = 1; i < 8; ++i) {
      pieces_[k][i].read = copy_of(pieces_[k][i].read);
      pieces_[k][i].atomic = copy_of(pieces_[k][i].atomic);
    }
    split_[granule] = k + 1;
  }
  return pieces_[split_[granule] - 1];
}

// What an earlier block left becomes a mark, what an earlier launch left is forgotten.
void Region::refresh(Cell& cell) {
  if (cell.block == block_) return;
  if (role_ == Role::shared) {
    cell.valid = false;
  } else if (cell.block < first_of_launch_) {
    cell.earlier = 0;
  } else {
    const auto mark = [&](const Epoch& e, Touch touch) {
      if (e.clock) cell.earlier = static_cast<std::uint8_t>(cell.earlier | 1 << int(touch));
    };
    mark(cell.write, Touch::write), mark(cell.read, Touch::read), mark(cell.atomic, Touch::atomic);
  }
  release(cell.read), release(cell.atomic);
  cell.write = {};
  cell.block = block_;
}

void Region::visit(Cell& cell, std::size_t byte, Touch touch, const Toucher& who) {
  refresh(cell);
  // Nothing new: the same actor did the same before, and nobody else came between. (Two writes of
  // one thread are ordered, two of its asynchronous copies are not.)
  if (touch == Touch::read && !cell.atomic.clock && has(cell.read, who)) return;
  if (touch == Touch::write && cell.write == who.epoch && who.epoch.actor == who.clock.id &&
      !cell.read.clock && !cell.atomic.clock)
    return;

  if (touch != Touch::write && !cell.valid)
    throw Crime("UNINITIALISED " + place(byte) + ": " + name_of(touch) + " by " +
                describe_actor(who.epoch.actor, who.clock.threads) + " at " + text(who.at));
  refuse_earlier_blocks(cell, byte, touch, who);
  refuse_unknown(cell.write, Touch::write, cell.write_at, byte, touch, who);
  if (touch != Touch::read) refuse_unknown(cell.read, Touch::read, cell.read_at, byte, touch, who);
  if (touch != Touch::atomic)
    refuse_unknown(cell.atomic, Touch::atomic, cell.atomic_at, byte, touch, who);

  if (!who.leaves_trace) return;
  if (touch == Touch::read) {
    add(cell.read, who);
    cell.read_at = who.at;
  } else if (touch == Touch::atomic) {
    add(cell.atomic, who);
    cell.atomic_at = who.at;
  } else {
    // Everybody before is known to this writer, so knowing the writer is knowing them.
    release(cell.read), release(cell.atomic);
    cell.write = who.epoch;
    cell.write_at = who.at;
    cell.valid = true;
  }
}

void Region::refuse_earlier_blocks(const Cell& cell, std::size_t byte, Touch touch,
                                   const Toucher& who) const {
  if (!cell.earlier) return;
  for (const Touch other : {Touch::write, Touch::read, Touch::atomic}) {
    const bool harmless = touch == other && touch != Touch::write;
    if (harmless || !(cell.earlier >> int(other) & 1)) continue;
    const Where at = other == Touch::write  ? cell.write_at
                     : other == Touch::read ? cell.read_at
                                            : cell.atomic_at;
    throw Crime("RACE between blocks on " + place(byte) + ": " + name_of(touch) + " at " +
                text(who.at) + ", " + name_of(other) + " by another block at " + text(at));
  }
}

void Region::refuse_unknown(Epoch e, Touch other, Where at, std::size_t byte, Touch touch,
                            const Toucher& who) const {
  if (!e.clock) return;
  if (is_set(e)) return refuse_unknown_set(e, other, at, byte, touch, who);
  const std::uint32_t threads = who.clock.threads;
  const auto both = [&] {
    return place(byte) + ": " + name_of(touch) + " by " + describe_actor(who.epoch.actor, threads) +
           " at " + text(who.at) + ", " + name_of(other) + " by " +
           describe_actor(e.actor, threads) + " at " + text(at);
  };
  if (!who.clock.knows(e)) throw Crime("RACE on " + both() + ", and nothing orders the two");
  // Ordinary reads need no fence before an asynchronous write: the reader has its value.
  const bool ordinary = e.actor < 2 * threads && other != Touch::read;
  if (who.proxy && ordinary && !who.clock.knows_fenced(e))
    throw Crime("PROXY FENCE missing between " + both());
}

void Region::refuse_unknown_set(Epoch e, Touch other, Where at, std::size_t byte, Touch touch,
                                const Toucher& who) const {
  for (const Member& member : sets_[e.clock - 1])
    for (std::uint32_t lanes = member.lanes; lanes; lanes &= lanes - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
      refuse_unknown({member.clock, member.group * 32 + lane}, other, at, byte, touch, who);
    }
}

// ---- sets of readers, sets of atomic accesses ---------------------------------------------------

bool Region::has(Epoch of, const Toucher& who) const {
  if (!of.clock) return false;
  if (!is_set(of)) return of == who.epoch && std::has_single_bit(who.lanes);
  for (const Member& member : sets_[of.clock - 1])
    if (member.group == who.epoch.actor / 32 && member.clock == who.epoch.clock)
      return (who.lanes & ~member.lanes) == 0;
  return false;
}

// A lane that comes again at a later clock replaces its earlier self, which program order puts
// before.
void Region::add_member(Set& set, const Toucher& who) const {
  const std::uint32_t group = who.epoch.actor / 32;
  for (Member& member : set)
    if (member.group == group && member.clock == who.epoch.clock) {
      member.lanes |= who.lanes;
      return;
    }
  for (std::size_t i = set.size(); i-- > 0;)
    if (set[i].group == group && !(set[i].lanes &= ~who.lanes)) {
      set[i] = set.back();
      set.pop_back();
    }
  set.push_back({group, who.epoch.clock, who.lanes});
}

void Region::add(Epoch& to, const Toucher& who) {
  const bool alone = std::has_single_bit(who.lanes);
  // Who knows the later moment of an actor knows its earlier ones.
  const bool earlier_self = to.actor == who.epoch.actor && to.clock <= who.epoch.clock;
  if (alone && !is_set(to) && (!to.clock || earlier_self || who.clock.knows(to))) {
    to = who.epoch;
    return;
  }
  if (!is_set(to)) {
    std::uint32_t k;
    if (spare_sets_.empty()) {
      k = static_cast<std::uint32_t>(sets_.size());
      sets_.emplace_back();
    } else {
      k = spare_sets_.back();
      spare_sets_.pop_back();
    }
    sets_[k].clear();
    if (to.clock) sets_[k].push_back({to.actor / 32, to.clock, 1u << to.actor % 32});
    to = {k + 1, set_mark};
  }
  add_member(sets_[to.clock - 1], who);
}

void Region::release(Epoch& e) {
  if (is_set(e)) spare_sets_.push_back(e.clock - 1);
  e = {};
}

Epoch Region::copy_of(Epoch e) {
  if (!is_set(e)) return e;
  const Set copy = sets_[e.clock - 1];
  sets_.push_back(copy);
  return {static_cast<std::uint32_t>(sets_.size()), set_mark};
}

std::size_t Region::first_unwritten() const {
  for (std::size_t byte = 0; byte < bytes_ && !cells_.empty(); byte += 2) {
    const std::size_t from = byte + lead_, granule = from / 16;
    const std::uint32_t split = split_[granule];
    const Cell& cell = split ? pieces_[split - 1][from % 16 / 2] : cells_[granule];
    if (!cell.valid) return byte;
  }
  return bytes_;
}

}  // namespace plumbline::device::host
