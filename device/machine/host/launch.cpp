// A launch: its blocks in random order, each with poisoned shared memory, each ended with nothing
// in flight. And the buffers around it.
#include "device/machine/host/launch.hpp"

#include <cstdlib>

#include "device/machine/host/asynchronous.hpp"

namespace plumbline::device::host {

void refuse_index(const std::string& what, int axis, Index index, std::int64_t extent) {
  throw Crime("OUT OF BOUNDS: index " + std::to_string(index.value) + " of axis " +
              std::to_string(axis) + " of " + what + ", which has " + std::to_string(extent) +
              ", by thread " + std::to_string(Machine::me().clock.id) + " at " + text(index.at));
}

void refuse_wide(const Region& region, const void* p, int bytes, bool leaves, Where at) {
  const auto byte = static_cast<std::size_t>(static_cast<const char*>(p) - region.base());
  throw Crime((leaves ? "OUT OF BOUNDS: an access of " : "MISALIGNED access of ") +
              std::to_string(bytes) + " bytes at " + region.place(byte) +
              (leaves ? " leaves its row, by thread " : ", by thread ") +
              std::to_string(Machine::me().clock.id) + " at " + text(at));
}

// ---- tensor maps --------------------------------------------------------------------------------

char* TensorMap::chunk(std::int64_t row, std::int64_t column) const {
  const bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
  return inside ? data + 2 * (row * stride + column) : nullptr;
}

void TensorMap::check(int box, const char* what, int column, const void* tile, Where at) const {
  const std::string where = std::string(" of ") + what + " at " + text(at);
  if (box != box_rows)
    throw Crime("TENSOR MAP: its boxes have " + std::to_string(box_rows) + " rows, the tile" +
                where + " has " + std::to_string(box));
  // Chunks of 16 bytes would straddle the matrix's edge.
  if (column % 8) throw Crime("MISALIGNED column " + std::to_string(column) + where);
  const char* const base = Machine::current().shared().base();
  if ((static_cast<const char*>(tile) - base) % 1024)
    throw Crime("MISALIGNED tile" + where + ": a swizzled tile starts at a multiple of 1024 bytes");
}

Region& TensorMap::region() const {
  const auto bytes = static_cast<std::size_t>(((rows - 1) * stride + columns) * 2);
  if (!region_) region_ = &Machine::current().find(data, bytes, "tensor map");
  return *region_;
}

TensorMap make_tensor_map(char* data, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                          int box_rows) {
  if (reinterpret_cast<std::uintptr_t>(data) % 16 || stride % 8 || columns % 8)
    throw std::invalid_argument("a tensor map needs addresses, rows and columns of whole 16 bytes");
  TensorMap map;
  map.data = data, map.rows = rows, map.columns = columns, map.stride = stride;
  map.box_rows = box_rows;
  return map;
}

// ---- blocks -------------------------------------------------------------------------------------

Region& Machine::find(const void* p, std::size_t bytes, const char* what) {
  for (const auto& buffer : buffers)
    if (buffer->holds(p, bytes)) return *buffer;
  throw Crime("OUT OF BOUNDS: a " + std::string(what) + " of " + std::to_string(bytes) +
              " bytes lies in no registered buffer");
}

void Machine::launch(int block_threads, Grid blocks, std::size_t plan_bytes,
                     const std::function<void(void*)>& body) {
  threads = block_threads, grid = blocks;
  giving_up_ = false;
  random_state_ = options.seed * 0x9E3779B97F4A7C15 + block_number_;
  // wgmma and TMA count addresses from the start of shared memory, in swizzle atoms of 1024 bytes.
  const std::size_t bytes = (plan_bytes + 1023) / 1024 * 1024;
  const std::unique_ptr<void, void (*)(void*)> arena(std::aligned_alloc(1024, bytes), std::free);
  shared_ = std::make_unique<Region>("shared", Role::shared, arena.get(), plan_bytes, 1);
  const std::uint32_t first = block_number_ + 1;
  std::vector<std::int64_t> order(static_cast<std::size_t>(grid.x * grid.y * grid.z));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random(i)]);
  start_fibers();
  for (const std::int64_t number : order) {
    block = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
    ++block_number_;
    shared_->begin_block(block_number_, first);
    for (const auto& buffer : buffers) buffer->begin_block(block_number_, first);
    poison(arena.get(), plan_bytes);
    run_block([&] { body(arena.get()); });
    if (!crime.empty()) break;
  }
  if (!crime.empty())
    crime += " [block " + std::to_string(block.x) + ", " + std::to_string(block.y) + ", " +
             std::to_string(block.z) + "]";
}

void Machine::run_block(const std::function<void()>& body) {
  body_ = body;
  unfinished_ = threads;
  const auto warps = static_cast<std::size_t>(threads) / 32, groups = (warps + 3) / 4;
  warps_.assign(warps, {}), groups_.assign(groups, {}), tensor_.assign(groups, {});
  barriers_.fill({});
  mbarriers_.clear(), landings_.clear();
  bulk_in_use_ = 0;
  nothing_ = new Vector(actors());
  merge_seen_.forget(), merge_fenced_.forget();
  ready_.clear();
  for (int i = 0; i < threads; ++i) {
    Thread& t = *all_[static_cast<std::size_t>(i)];
    t.clock = Clock{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(threads), nothing_,
                    nothing_};
    t.copies.clear(), t.groups.clear(), t.stores.clear(), t.store_groups.clear();
    t.copy_tick = 1, t.last_copy = 0, t.store_tick = t.store_actor = 0;
    t.issues = 0, t.register_tick = t.register_fence = 0, t.left_out = 0;
    t.passages.clear();
    wake(&t);
  }
  run_somebody();
  if (crime.empty()) check_nothing_in_flight();
}

void Machine::check_nothing_in_flight() {
  std::size_t copies = 0, stores = 0, products = 0;
  for (const auto& t : all_) copies += t->copies.size(), stores += t->stores.size();
  for (const Warpgroup& group : tensor_) {
    products += group.open.size() + group.issues.size();
    for (const auto& g : group.groups) products += g.size();
  }
  if (copies + stores + products + landings_.size() == 0) return check_everything_waited_for();
  crime = "IN FLIGHT at the end of the block: " + std::to_string(copies) +
          " asynchronous copies, " + std::to_string(landings_.size()) +
          " bulk copies or arrivals, " + std::to_string(stores) + " stores, " +
          std::to_string(products) + " products";
}

// In the early schedule everything has landed; but has anybody waited for it?
void Machine::check_everything_waited_for() {
  if (!options.shadow) return;
  std::vector<Clock> clocks;
  for (int i = 0; i < threads; ++i) clocks.push_back(all_[static_cast<std::size_t>(i)]->clock);
  const Lesson end = join(clocks);
  const auto waited = [&](std::uint32_t tick, std::size_t actor) {
    return end.seen->at[actor] >= tick;
  };
  for (const Clock& clock : clocks)
    if (!waited(all_[clock.id]->last_copy, clock.threads + clock.id))
      crime =
          "IN FLIGHT at the end of the block: nobody waits for the last asynchronous copy of "
          "thread " +
          std::to_string(clock.id);
  for (const auto& [offset, barrier] : mbarriers_)
    if (!waited(barrier.issued, barrier.actor))
      crime =
          "IN FLIGHT at the end of the block: nobody waits for the last bulk copy on the "
          "mbarrier at shared+" +
          std::to_string(offset);
}

// ---- buffers ------------------------------------------------------------------------------------

Stream::Stream(Options options) { machine_.options = std::move(options); }

void Stream::add(std::string name, Role role, void* data, std::size_t bytes, std::size_t element) {
  const char* const from = static_cast<const char*>(data);
  for (const auto& other : machine_.buffers)
    if (from < other->base() + other->bytes() && other->base() < from + bytes)
      throw std::invalid_argument("buffers " + name + " and " + other->name() + " overlap");
  if (role == Role::output || role == Role::workspace) poison(data, bytes);
  machine_.buffers.push_back(std::make_unique<Region>(std::move(name), role, data, bytes, element));
}

const std::string& Stream::finish() {
  if (machine_.options.shadow)
    for (const auto& buffer : machine_.buffers) {
      if (failed() || buffer->role() != Role::output) continue;
      const std::size_t byte = buffer->first_unwritten();
      if (byte < buffer->bytes()) fail("UNWRITTEN output " + buffer->place(byte));
    }
  return error();
}

}  // namespace plumbline::device::host
