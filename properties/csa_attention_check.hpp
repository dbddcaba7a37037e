// properties/csa_attention_check.hpp
//
// Evaluations of a CsaCase with types, and the comparisons that its properties share: 45 of mp50's and f192's digits,
// 11.5 of f64's, from a row's largest number, at least 1.
#pragma once
#include "properties/csa_attention_case.hpp"

namespace plumbline::properties {

using support::Agreement;
using support::Distribution;
using support::property;
using support::Typed;

inline constexpr double high_digits = 45, double_digits = 11.5;

template <class T> Typed<T> attend(const Problem& problem, bool backward = true) {
  Evaluation how;
  how.backward = backward;
  return support::evaluate<csa_attention::Op, T>(problem, how);
}
inline Result attend_f64(const Problem& problem, int threads = 1) {
  Evaluation how;
  how.precision = Precision::f64;
  how.backward = true;
  how.threads = threads;
  return operation("csa_attention").evaluate(problem, how);
}
inline Typed<mp50> evaluate_mla(const Problem& problem) {
  return support::evaluate<mla_attention::Op, mp50>(problem);
}

template <class A, class B> void holds(const std::map<std::string, Array<A>, std::less<>>& found,
                                       const std::map<std::string, Array<B>, std::less<>>& expected,
                                       double digits = high_digits) {
  RC_ASSERT(found.size() == expected.size());
  Agreement worst;
  for (const auto& [name, array] : expected) {
    RC_ASSERT(found.find(name) != found.end());
    worst.note(support::agreement(found.find(name)->second, array, name, 1));
  }
  RC_LOG() << "digits shared: " << worst.digits << " of " << digits << "; " << worst.where
           << std::endl;
  RC_ASSERT(worst.digits >= digits);
}
template <class A, class B>
void holds(const Typed<A>& found, const Typed<B>& expected, double digits = high_digits) {
  holds(found.outputs, expected.outputs, digits);
  holds(found.gradients, expected.gradients, digits);
}
inline void same_bits(const Result& found, const Result& expected) {
  const std::string what = support::difference(found, expected);
  RC_LOG() << (what.empty() ? "" : "other bits: " + what) << std::endl;
  RC_ASSERT(what.empty());
}

// A tensor's numbers in T, whatever it is stored as.
template <class T> Array<T> numbers(const StoredTensor& tensor) {
  Array<T> array(tensor.shape);
  support::each_index(tensor.shape, [&](std::size_t flat, Index index) {
    array.values[flat] = Fetch<T>::element(tensor, index);
  });
  return array;
}

// Options of the same softmax in mla_attention, whose values are its keys.
inline Json mla_options(const CsaCase& x) {
  Json options = {{"v_dim", x.D}};
  for (const char* name : {"softmax_scale", "lse_base", "lse_includes_sink"}) {
    if (x.problem.options.contains(name)) options[name] = x.problem.options[name];
  }
  return options;
}
// The case through mla_attention over its S tokens and then its N blocks.
Typed<mp50> attend_as_mla(const CsaCase& attention);

}  // namespace plumbline::properties
