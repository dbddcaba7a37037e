// device/machine/host/machine.hpp
//
// The host's multiprocessor: one block at a time, its threads as fibers of one OS thread, in a
// seeded random order. Everything here is machinery behind operations.hpp; kernels never name it.
//
//   fibers.cpp    who runs, who waits, what a deadlock looks like
//   meetings.cpp  barriers, warps doing one thing together, leaving out a synchronisation
//   copies.cpp    cp.async, mbarriers, bulk copies, stores by TMA
//   tensor.cpp    products of a warp          wgmma.cpp  products of a warpgroup
//   launch.cpp    blocks, buffers, verdict on a launch
#pragma once
#include <array>
#include <boost/context/fiber.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "device/machine/host/shadow.hpp"
#include "device/machine/types.hpp"

namespace plumbline::device::host {

// How a tensor core adds sixteen products to an accumulator; hardware does not say.
//   sequential  one after another, rounded to f32 each time
//   once        in binary64, rounded to f32 at the end
//   truncated   aligned to the largest term, 24 bits kept, the rest cut off, and so is the sum
enum class Products { sequential, once, truncated };

struct Options {
  std::uint64_t seed = 1;  // order of blocks, warps, threads, copies, atomics; last bits of fast_*
  bool shadow = true;      // races, uninitialised memory, proxy fences
  bool late = true;        // asynchronous results as late as allowed, else as early as allowed
  bool wander = true;      // fast_* take any value within their ulp, else the correctly rounded one
  Products products = Products::sequential;
  std::optional<Site> without{};  // leave out this synchronisation ...
  int passage = -1;               // ... at every passage of each thread, or only at this one
};

struct Unwind {};  // thrown through the fibers of a block that is given up

struct Copy {  // 16 bytes by cp.async, not landed yet
  char* to;
  const char* from;
  bool valid;
  std::uint32_t tick;
};

struct Store {  // a tile on its way to global memory
  std::function<void()> perform;
  std::uint32_t tick;
};

struct Thread {
  enum State { ready, blocked, done };

  Clock clock;
  boost::context::fiber fiber;
  State state = done;
  const char* waits_for = "";
  std::uint32_t waits_id = 0;
  Where at;
  std::vector<int> passages;  // of each site
  int left_out = 0;           // of the one that is left out

  std::vector<Copy> copies;                    // oldest first
  std::deque<std::uint32_t> groups;            // the last tick of each committed group
  std::uint32_t copy_tick = 1, last_copy = 0;  // the next group's; of the last copy issued

  std::vector<Store> stores;
  std::deque<std::uint32_t> store_groups;
  std::uint32_t store_tick = 0, store_actor = 0;

  std::uint64_t issues = 0;          // of wgmma and wgmma_commit
  std::uint32_t register_tick = 0;   // counts writes to registers that wgmma uses
  std::uint32_t register_fence = 0;  // the same at the last wgmma_fence

  void* sanitizer_stack = nullptr;  // AddressSanitizer's view of the fiber
  const void* stack_bottom = nullptr;
  std::size_t stack_size = 0;
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  std::vector<Clock> clocks;
  std::vector<Thread*> waiting;
  Where first;
};

struct Meeting {  // of a warp or a warpgroup
  int arrived = 0;
  const char* what = "";
  Where at;
  std::array<void*, 128> part{};
  std::vector<Thread*> waiting;
};

struct Mbarrier {
  std::uint32_t offset = 0, actor = 0;  // where in shared memory; who its bulk copies are
  int expected = 0, pending = 0;
  std::int64_t bytes = 0;  // announced minus landed
  std::uint32_t phase = 0;
  bool published = false;  // init is visible to the async proxy by fence_barrier_init
  std::uint32_t initialiser = 0;
  std::vector<Clock> clocks;
  Lesson lesson;  // of the last finished phase
  std::vector<Thread*> waiting;
  std::uint32_t issued = 0;                // bulk copies
  std::vector<std::uint32_t> outstanding;  // those not landed
};

struct Landing {  // of a bulk copy, or an arrival that waits for copies; in any order
  Mbarrier* barrier;
  std::function<void()> land;
};

// A wgmma as issued: what the instruction names, and for each of the 128 threads its registers.
struct AccumulatorState {
  bool in_flight = false;
  std::uint32_t written = 0;
};
struct WarpgroupProduct {
  int columns = 0;
  Descriptor a{}, b{};
  bool add = false, a_in_registers = false, transposed = false;
  std::array<AccumulatorState*, 128> state{};
  std::array<float*, 128> accumulator{};
  std::array<std::array<std::uint32_t, 4>, 128> fragment{};
};
struct Issue {
  bool commit = false;
  int arrived = 0;
  Where at;
  WarpgroupProduct product;
  std::array<Clock, 4> clock;  // of each warp's first lane
};
struct Warpgroup {
  std::deque<Issue> issues;
  std::uint64_t passed = 0;  // issues that all 128 threads have reached
  std::vector<WarpgroupProduct> open;
  std::deque<std::vector<WarpgroupProduct>> groups;
  std::uint32_t products = 0;
};

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  Options options;
  int threads = 0;    // of a block
  Grid grid, block;   // how many there are, which one runs
  std::string crime;  // the first; empty so far
  std::vector<Site> sites;
  std::uint64_t switches = 0;

  Region& shared() { return *shared_; }
  Region& find(const void* p, std::size_t bytes, const char* what);  // a registered buffer
  std::vector<std::unique_ptr<Region>> buffers;

  void launch(int threads, Grid grid, std::size_t plan_bytes,
              const std::function<void(void*)>& body);

  // fibers.cpp
  std::uint64_t random();
  std::size_t random(std::size_t below);
  void wait(const char* what, std::uint32_t id, Where at);  // until woken
  void wake(Thread* thread);
  void give_way();  // somebody else may run first
  void give_up(const std::string& text);

  // meetings.cpp
  bool left_out(const char* kind, Where at);
  void sync(int id, int count, bool waits, Where at);
  void sync_warp(Where at);
  // The last to come gets everybody's parts, then dismisses the others; they get nullptr, later.
  void** meet(Meeting& meeting, int size, int index, void* part, const char* what, Where at);
  void dismiss(Meeting& meeting);
  Meeting& warp() { return warps_[me_id() / 32]; }

  // copies.cpp
  void touch(Region& region, const void* p, int size, Touch touch, Where at);
  void copy_async16(Region& to, void* p, Region& from, const void* q, bool valid, Where at);
  void commit();
  void wait_groups(std::size_t left);
  void init_barrier(void* word, int count, Where at);
  void arrive(void* word, int bytes, Where at);
  void arrive_when_copied(void* word, Where at);
  void wait_barrier(void* word, int parity, Where at);
  void fence_async();
  void fence_barrier_init();
  // A bulk copy on a barrier: `source` and `target` list what it reads and writes, 16 bytes each;
  // a source may be missing, then zeros are written.
  struct Piece {
    Region* from;
    const void* source;
    void* target;
  };
  void copy_bulk(std::vector<Piece> pieces, void* word, Where at);
  void store_bulk(std::vector<Piece> pieces, Where at);
  void commit_stores();
  void wait_stores(std::size_t left);

  // tensor.cpp
  void ldmatrix(std::uint32_t (&x)[4], const void* row, bool transposed, Where at);
  void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Where at);
  // acc: [groups][4]; piece: the 16-byte rows that this lane would fetch, one per two groups.
  void strip(float* acc, int groups, const std::uint32_t (&a)[4], const void* const* piece,
             bool transposed, Where at);

  // wgmma.cpp
  void wgmma(AccumulatorState& state, float* acc, int columns, const std::uint32_t* fragment,
             std::uint32_t fragment_written, Descriptor a, Descriptor b, bool add, bool transposed,
             Where at);
  void wgmma_commit(Where at);
  void wgmma_wait(std::size_t left, Where at);

  static Machine& current() { return *current_; }
  static Thread& me() { return *me_; }

 private:
  std::uint32_t me_id() const { return me().clock.id; }
  std::size_t actors() const {
    return 2 * static_cast<std::size_t>(threads) + bulk_actors + tensor_actors;
  }

  void start_fibers();
  void run_fiber(Thread& thread);
  void run_somebody();
  void switch_to(Thread* to);
  void deliver(std::size_t k);
  std::string deadlock();
  void run_block(const std::function<void()>& body);
  void check_nothing_in_flight();
  void check_everything_waited_for();

  void land_copies(Thread& thread, std::uint32_t through);
  Mbarrier& barrier_at(void* word, Where at, bool proxy);
  void advance(Mbarrier& barrier);
  void arrived(Mbarrier& barrier, const Clock& clock, Where at);
  std::uint32_t new_bulk_actor(std::uint32_t count);

  Issue& issue(bool commit, Where at);
  void pass(Warpgroup& group, std::size_t number);
  void charge(const Issue& issue, std::size_t number);  // the tensor cores' reads
  const void* operand_row(const WarpgroupProduct&, bool left, int row, int column) const;
  void multiply(WarpgroupProduct& product);

  static inline constinit thread_local Machine* current_ = nullptr;
  static inline constinit thread_local Thread* me_ = nullptr;

  std::uint64_t random_state_ = 1;
  std::vector<std::unique_ptr<Thread>> all_;
  Thread main_;
  Thread* previous_ = nullptr;
  std::vector<Thread*> ready_;
  int unfinished_ = 0;
  bool giving_up_ = false, closing_ = false;
  std::function<void()> body_;

  std::unique_ptr<Region> shared_;
  std::array<NamedBarrier, 16> barriers_;
  std::vector<Meeting> warps_, groups_;
  std::vector<Warpgroup> tensor_;
  std::map<std::uint32_t, Mbarrier> mbarriers_;
  std::vector<Landing> landings_;
  std::uint32_t bulk_in_use_ = 0;
  Known nothing_;  // a vector of zeros
  Merger merge_seen_, merge_fenced_;
  std::uint32_t block_number_ = 0;  // through all launches
};

// NaN as bf16 and as f32, and as an index far out of any bounds (-1 would look like an empty slot).
void poison(void* p, std::size_t bytes);

}  // namespace plumbline::device::host
