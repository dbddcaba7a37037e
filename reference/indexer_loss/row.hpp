// reference/indexer_loss/row.hpp
//
// The loss of one query row over S_t, written as docs/ops/csa_indexer_loss.md writes it. A row is walked in passes
// over its keys: the student's normaliser, the head sum's normaliser, the terms. With barrier true the student's
// scores and ln T are kept between the passes; with barrier false they are computed again, a block at a time, and P
// is evaluated twice.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "reference/indexer_loss/key_set.hpp"
#include "reference/indexer_loss/teacher.hpp"

namespace plumbline::indexer_loss {

template <class T> class LossRow {
 public:
  LossRow(const Tensors& tensors, const Options& options, const Run& run,
          const Visibility& visibility, std::span<const T> sink, std::int64_t b, std::int64_t t);

  const KeySet& keys() const { return keys_; }
  T log_mass(std::int64_t head) {
    return teacher().log_mass(head);
  }  // ln Z, also of a row without keys

  // T, t and p of a key; t and p are 0 in a skipped row.
  using TakeKey =
      std::function<void(std::int64_t place, const T& head_sum, const T& target, const T& student)>;
  T loss(const TakeKey& take = {});  // Σ t (ln t − ln p), 0 for a skipped row; the keys on the way
  T surrogate();                     // logsumexp(z) − Σ t z, whose derivative is p − t
  // d loss / dz times the cotangent, a block of keys at a time; nothing for a skipped row.
  using Take = std::function<void(const KeySet::Block&, std::span<const T>)>;
  void gradient(const T& cotangent, const Take& take);

 private:
  struct
      Walk {  // one block of a pass: z the student's scores, log_t = ln T where the pass asked for it
    const KeySet::Block& block;
    std::span<const T> z, log_t;
    T log_head_sum(std::size_t j) const { return log_t.empty() ? -infinity<T>() : log_t[j]; }
  };
  struct Target {
    T value, log;
  };
  void walk(bool with_teacher, const std::function<void(const Walk&)>& f);
  void find_normalisers(bool with_slopes);
  void read_scores(const KeySet::Block& block, std::span<T> z) const;
  void read_log_head_sum(const KeySet::Block& block, std::span<T> log_t);
  Target target(std::int64_t place, const T& log_head_sum) const;
  T log_student(const T& z) const { return student_.log_weight(z, log_of_student_); }
  TeacherRow<T>& teacher();
  bool has_head_sum() const { return tensors_.query.given() || tensors_.given_head_sum.given(); }

  const Tensors& tensors_;
  const Options& options_;
  const Run& run_;
  const Visibility& visibility_;
  std::span<const T> sink_;
  std::int64_t b_, t_, block_;
  KeySet keys_;
  IndexTensors index_;
  std::unique_ptr<TeacherRow<T>> teacher_;

  bool normalised_ = false, skipped_ = false, kept_ = false;
  LogSum<T> student_, total_;  // Σ exp z, Σ T
  T log_of_student_{0}, log_of_total_{0};
  T ratio_{1}, log_ratio_{0};  // what l1 makes of 1: ΣT / normaliser
  T slope_{0};                 // Σ t g, g = d ln p' / d ln p
  KeySet::Block all_;
  Buffer<T> kept_z_, kept_log_t_;
};

}  // namespace plumbline::indexer_loss
