// reference/indexer_loss/teacher.hpp
//
// The teacher of one row: c_h[s] = softmax_scale · query_h · key_h[s], ln Z_h over the keys (and, jointly, the
// window and the sink), and ln T[s] = ln Σ_h exp(c_h[s] − ln Z_h), never T itself, so that nothing underflows.
#pragma once
#include <span>
#include <vector>

#include "reference/indexer_loss/key_set.hpp"
#include "reference/tensor/operands.hpp"

namespace plumbline::indexer_loss {

template <class T> class TeacherRow {
 public:
  TeacherRow(const Tensors& tensors, const Options& options, const Run& run,
             const Visibility& visibility, std::span<const T> sink, std::int64_t b, std::int64_t t);

  // ln Z_h of every head; streams key_block keys at a time.
  void find_log_mass(const KeySet& keys);
  T log_mass(std::int64_t head) const;
  // ln T over some of the row's keys; evaluates P heads·|keys| times.
  void log_head_sum(std::span<const std::int64_t> keys, std::span<T> out) const;

 private:
  void fetch_queries(std::int64_t first, std::int64_t last, Operands<T>& q) const;
  void logits(std::int64_t first, std::int64_t last, const Operands<T>& q, std::int64_t key,
              std::span<T> c) const;
  T log_probability(std::int64_t head, const T& c) const;
  T read_log_mass(std::int64_t head, const KeySet& keys) const;
  void add_window(std::int64_t first, std::int64_t last, const Operands<T>& q);

  const Tensors& tensors_;
  const Options& options_;
  const Run& run_;
  const Visibility& visibility_;
  std::span<const T> sink_;
  std::int64_t b_, t_, heads_, width_, key_heads_;
  T scale_;
  Buffer<LogSum<T>> mass_;        // one per head
  Buffer<T> log_of_sum_, given_;  // ln of each head's sum; given.log_mass
};

}  // namespace plumbline::indexer_loss
