// reference/operation/run.hpp
//
// How an operation is run: its schedule (order of work and memory, never the function), the outputs asked for, and
// threads. Guarantees: rows may run on any thread, results land where the row belongs, and sums over rows go
// through a fixed number of shards in a fixed order, so no bit depends on the number of threads. Of several errors
// the one of the lowest row is reported.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "reference/numeric/work.hpp"

namespace plumbline {

struct Schedule {
  bool barrier = true, sliced = false, absorbed = false;
  std::int64_t head_chunk = 0, key_block = 0, prefill = 0, step = 0;

  template <class Visitor> void fields(Visitor& v) {
    v("barrier", barrier,
      "keep what a row computes between its passes (true) or compute it again (false)");
    v("head_chunk", head_chunk, "heads summed at a time; 0 = all");
    v("key_block", key_block, "keys streamed at a time with a running maximum; 0 = all");
    v("sliced", sliced, "slice weights before the contraction instead of splitting the product");
    v("absorbed", absorbed,
      "scores and outputs through the latent instead of expanded keys and values");
    v("prefill", prefill, "tokens of the first call; 0 = none");
    v("step", step, "tokens of each later call; 0 = the rest in one call");
  }
  bool operator==(const Schedule&) const = default;
};

struct Run {
  Schedule schedule;
  std::set<std::string, std::less<>> outputs;  // those on request that are wanted
  int threads = 1;
  bool surrogate =
      false;             // a loss returns the function its gradient belongs to (gradient p_minus_t)
  Work* work = nullptr;  // counters, added up over the threads

  bool wants(std::string_view name) const { return outputs.find(name) != outputs.end(); }
};

// f(i) for i in [0, count), on the threads of the run; counters go to run.work.
void for_each_row(const Run& run, std::int64_t count, const std::function<void(std::int64_t)>& f);

// The same in shards: f(shard, first, last), rows of a shard in order. The number of shards depends on count alone.
inline constexpr std::int64_t most_shards = 8;
std::int64_t shards_of(std::int64_t count);
void for_each_shard(const Run& run, std::int64_t count,
                    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f);

// Chunks of n (0 = all) over [0, count): f(first, last). The last one may be shorter.
template <class F> void in_chunks(std::int64_t count, std::int64_t n, F f) {
  const std::int64_t width = n == 0 ? count : n;
  for (std::int64_t first = 0; first < count; first += width) {
    f(first, first + width < count ? first + width : count);
  }
}

}  // namespace plumbline
