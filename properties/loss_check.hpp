// properties/loss_check.hpp
//
// Evaluations of a LossCase with types, and the comparison that its properties share: 45 of mp50's and f192's digits,
// 2^-40 in f64, counted from the row's largest number (tensors of fewer than three axes: from the tensor's), but from
// 1 where a number is the difference of probabilities or the sum of logarithms that stand around 1.
#pragma once
#include "properties/loss_case.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::properties {

using support::Agreement;
using support::Typed;

inline constexpr double high_digits = 45, double_digits = 12.04;  // 2^-40

template <class T> Typed<T> evaluate(const LossCase& loss, const Problem& problem, int threads = 1);
template <class T> Typed<T> evaluate(const LossCase& loss) {
  return evaluate<T>(loss, loss.problem);
}
// The same through the registry: values as pairs of doubles.
Result evaluate_f64(const LossCase& loss, const Problem& problem, int threads = 1);

Typed<f192> indexer_scores_f192(const Problem& problem, bool backward);

inline double floor_of(const std::string& name) {
  return name == "head_sum" || name == "target" || name == "student" ? 0 : 1;
}

template <class A, class B>
Agreement agreement(const std::map<std::string, Array<A>, std::less<>>& found,
                    const std::map<std::string, Array<B>, std::less<>>& expected) {
  Agreement worst;
  if (found.size() != expected.size())
    worst.note(-support::all_digits, "another number of tensors");
  for (const auto& [name, array] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) {
      worst.note(-support::all_digits, name + " is missing");
    } else {
      worst.note(support::agreement(other->second, array, name, floor_of(name)));
    }
  }
  return worst;
}
template <class A, class B> Agreement agreement(const Typed<A>& found, const Typed<B>& expected) {
  Agreement worst = agreement(found.outputs, expected.outputs);
  worst.note(agreement(found.gradients, expected.gradients));
  return worst;
}

inline void holds(const Agreement& found, double digits) {
  RC_LOG() << "digits shared: " << found.digits << " of " << digits << "; " << found.where
           << std::endl;
  RC_ASSERT(found.digits >= digits);
}
inline void same_bits(const Result& found, const Result& expected) {
  const std::string what = support::difference(found, expected);
  RC_LOG() << (what.empty() ? "" : "other bits: " + what) << std::endl;
  RC_ASSERT(what.empty());
}

// Entries of arrays along one axis, in the order of a list.
template <class T>
Array<T> take(const Array<T>& array, std::size_t axis, const std::vector<std::int64_t>& list) {
  Shape shape = array.shape;
  shape[axis] = static_cast<std::int64_t>(list.size());
  Array<T> made(shape);
  const Shape stride = row_major(array.shape);
  support::each_index(shape, [&](std::size_t flat, Index index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      offset += (i == axis ? list[static_cast<std::size_t>(index[i])] : index[i]) * stride[i];
    }
    made.values[flat] = array.values[static_cast<std::size_t>(offset)];
  });
  return made;
}

// The same for an input of a problem, if it has it.
inline void take_in(Problem& problem, const std::string& name, std::size_t axis,
                    const std::vector<std::int64_t>& list) {
  const auto found = problem.in.find(name);
  if (found != problem.in.end())
    support::put_in(problem, name, support::take(found->second, axis, list));
}
inline std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> made(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    made[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return made;
}

}  // namespace plumbline::properties
