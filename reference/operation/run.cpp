#include "reference/operation/run.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "reference/numeric/contract.hpp"
#include "reference/operation/stop.hpp"

namespace plumbline {

const std::atomic<bool>*& this_stop() {
  thread_local const std::atomic<bool>* stop = nullptr;
  return stop;
}

void for_each_row(const Run& run, std::int64_t count, const std::function<void(std::int64_t)>& f) {
  std::mutex guard;
  std::atomic<std::int64_t> next{0}, failed{count};
  std::exception_ptr error;
  const Arithmetic* const arithmetic = this_arithmetic();
  const std::atomic<bool>* const stop = this_stop();
  const auto work = [&](bool own_thread) {
    this_arithmetic() = arithmetic;
    this_stop() = stop;
    Work outer = this_work();
    this_work() = Work{};
    for (std::int64_t row = next++; row < count && row < failed; row = next++) {
      try {
        if (stop != nullptr && *stop) throw Stopped();
        f(row);
      } catch (...) {
        const std::lock_guard lock(guard);
        if (row < failed) failed = row, error = std::current_exception();
      }
    }
    const std::lock_guard lock(guard);
    if (run.work != nullptr) *run.work += this_work();
    if (!own_thread) this_work() = outer;
  };
  const std::int64_t threads =
      std::clamp<std::int64_t>(run.threads, 1, std::max<std::int64_t>(count, 1));
  std::vector<std::thread> pool;
  for (std::int64_t i = 1; i < threads; ++i) pool.emplace_back(work, true);
  work(false);
  for (std::thread& thread : pool) thread.join();
  if (error) std::rethrow_exception(error);
}

std::int64_t shards_of(std::int64_t count) { return std::min(count, most_shards); }

void for_each_shard(const Run& run, std::int64_t count,
                    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) {
  const std::int64_t shards = shards_of(count);
  for_each_row(run, shards, [&](std::int64_t shard) {
    f(shard, shard * count / shards, (shard + 1) * count / shards);
  });
}

}  // namespace plumbline
