// device/machine/host/shadow.hpp
//
// Who touched each piece of memory last, and does the present toucher know of it?
//
// Two accesses race when they overlap, come from different actors, are neither both reads nor both
// atomic, and neither is known to the other (FastTrack, Flanagan and Freund, PLDI 2009: epochs
// against vector clocks; atomic accesses are kept beside readers and writers, because they are
// unordered among themselves and every one of them must be known to a plain access).
// Blocks run one after another, in random order, but a GPU promises no order between them: whatever
// conflicts with an earlier block of the same launch is a race.
//
// One cell speaks for 16 bytes, the size of almost all accesses; it is split into cells of 2 bytes
// when something smaller arrives, and joined again by the next 16-byte write.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "device/machine/host/clock.hpp"
#include "device/machine/host/where.hpp"

namespace plumbline::device::host {

enum class Touch { read, write, atomic };

// Who touches: `lanes` are bits within the actor's group of 32, since the four tensor cores of a
// warpgroup read the same operand at once. `proxy`: through the async proxy. `leaves_trace`: later
// accesses are held against this one.
struct Toucher {
  Epoch epoch;
  std::uint32_t lanes = 0;
  const Clock& clock;
  Where at;
  bool proxy = false, leaves_trace = true;
};

// input: only read during launches. output: must be written in full. workspace: neither.
// accumulator: holds values from the start. shared: a block's own, new for each block.
enum class Role { shared, input, output, workspace, accumulator };

class Region {
 public:
  Region(std::string name, Role role, void* base, std::size_t bytes, std::size_t element);

  const std::string& name() const { return name_; }
  Role role() const { return role_; }
  char* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  bool holds(const void* p, std::size_t bytes) const {
    const char* c = static_cast<const char*>(p);
    return c >= base_ && c + bytes <= base_ + bytes_;
  }

  // Blocks are numbered on through all launches. Earlier launches are ordered before this one.
  void begin_block(std::uint32_t block, std::uint32_t first_of_launch) {
    block_ = block, first_of_launch_ = first_of_launch;
  }
  void touch(const void* p, int size, Touch touch, const Toucher& who);
  // The first byte that nobody wrote, or bytes() if there is none.
  std::size_t first_unwritten() const;
  std::string place(std::size_t byte) const;  // "keys[12]", "shared+640"

 private:
  struct Cell {
    Epoch write, read, atomic;
    Where write_at, read_at, atomic_at;
    std::uint32_t block = 0;
    std::uint8_t earlier = 0;  // kinds of access by earlier blocks of this launch: 1 << Touch
    bool valid = false;        // holds a value
  };
  struct Member {  // of a set: lanes of one group of 32 actors, at one clock
    std::uint32_t group, clock, lanes;
  };
  using Set = std::vector<Member>;

  void visit(Cell& cell, std::size_t byte, Touch touch, const Toucher& who);
  void refresh(Cell& cell);
  void refuse_earlier_blocks(const Cell& cell, std::size_t byte, Touch touch, const Toucher&) const;
  void refuse_unknown(Epoch, Touch other, Where, std::size_t byte, Touch, const Toucher&) const;
  void refuse_unknown_set(Epoch, Touch other, Where, std::size_t byte, Touch, const Toucher&) const;
  void add(Epoch& to, const Toucher& who);
  void add_member(Set& set, const Toucher& who) const;
  bool has(Epoch of, const Toucher& who) const;
  void release(Epoch& e);
  Epoch copy_of(Epoch e);
  std::array<Cell, 8>& pieces_of(std::size_t granule);

  std::string name_;
  Role role_;
  char* base_;
  std::size_t bytes_, element_, lead_;  // lead: base lies this far beyond a multiple of 16
  std::uint32_t block_ = 0, first_of_launch_ = 0;
  std::vector<Cell> cells_;
  std::vector<std::uint32_t> split_;  // 0: one cell for the granule; else 1 + index of its pieces
  std::vector<std::array<Cell, 8>> pieces_;
  std::vector<std::uint32_t> spare_pieces_;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> spare_sets_;
};

std::string describe_actor(std::uint32_t actor, std::uint32_t threads);

}  // namespace plumbline::device::host
