// properties/agreement_check.hpp
//
// The comparisons that the properties of attention share: 45 of mp50's and f192's digits, 11.5 of f64's, from a row's
// largest number, at least 1; and bit for bit.
#pragma once
#include <map>
#include <string>

#include "tests/support/digits.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::properties {

using support::Agreement;
using support::Distribution;
using support::property;
using support::Typed;

inline constexpr double high_digits = 45, double_digits = 11.5;

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

}  // namespace plumbline::properties
