// reference/numeric/work.hpp
//
// What a schedule costs, counted where it happens: evaluations, conversions, bytes held by a row in flight.
// A schedule that does not change these numbers is only a parsed flag; tests compare them with the formulas
// that each operation's page states.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace plumbline {

struct Work {
  std::int64_t evaluations = 0;        // of P (losses), of logits or products (other operations)
  std::int64_t score_evaluations = 0;  // products q·k of the indexer
  std::int64_t normaliser_evaluations = 0;  // logits computed for a log-sum-exp only
  std::int64_t rows_fetched = 0;            // stored rows of key-like tensors converted
  std::int64_t peak_bytes = 0;              // of working-precision numbers, largest over the rows
  std::int64_t bytes = 0;                   // held at this moment by this thread

  Work& operator+=(const Work& other) {
    evaluations += other.evaluations;
    score_evaluations += other.score_evaluations;
    normaliser_evaluations += other.normaliser_evaluations;
    rows_fetched += other.rows_fetched;
    peak_bytes = std::max(peak_bytes, other.peak_bytes);
    return *this;
  }
};

inline Work& this_work() {
  thread_local Work work;
  return work;
}

template <class T> struct CountingAllocator {
  using value_type = T;
  CountingAllocator() = default;
  template <class U> CountingAllocator(const CountingAllocator<U>&) {}
  T* allocate(std::size_t n) {
    Work& work = this_work();
    work.bytes += static_cast<std::int64_t>(n * sizeof(T));
    work.peak_bytes = std::max(work.peak_bytes, work.bytes);
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) {
    this_work().bytes -= static_cast<std::int64_t>(n * sizeof(T));
    std::allocator<T>().deallocate(p, n);
  }
  template <class U> bool operator==(const CountingAllocator<U>&) const { return true; }
};

// Scratch of one row. A Buffer is made and dropped by the thread that works on the row.
template <class T> using Buffer = std::vector<T, CountingAllocator<T>>;

}  // namespace plumbline
