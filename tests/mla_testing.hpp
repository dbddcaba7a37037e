// tests/mla_testing.hpp: what the tests of the MLA operations share.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "reference/error.hpp"
#include "tests/support/problem.hpp"

namespace plumbline::mla_testing {

using support::f32s;
using support::f64s;
using support::gradient;
using support::i32s;
using support::Numbers;
using support::output;

inline constexpr double c1 = 0.5403023058681398, s1 = 0.8414709848078965;  // cos 1, sin 1
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline Result run(const char* op, const Problem& problem, Precision precision = Precision::f192,
                  int threads = 1) {
  Evaluation how;
  how.precision = precision;
  how.backward = !problem.cot.empty();
  how.threads = threads;
  return operation(op).evaluate(problem, how);
}
inline void expect_near(const Value& found, const Numbers& expected, double within = 1e-15) {
  ASSERT_EQ(found.high.size(), expected.size()) << found.name;
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.high[i], expected[i], within) << found.name << " " << i;
}
// The error of the problem begins with `where` and mentions `about`.
inline void expect_error(const char* op, const Problem& problem, const std::string& where,
                         const std::string& about = "") {
  try {
    run(op, problem, Precision::f64);
    ADD_FAILURE() << "no error, expected one about " << where;
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), where) << error.what();
    EXPECT_NE(std::string(error.what()).find(about), std::string::npos) << error.what();
  }
}
inline StoredTensor f8s(Shape shape, std::vector<std::uint8_t> codes) {
  return support::own(std::move(shape), Dtype::f8_e4m3, std::move(codes));
}

}  // namespace plumbline::mla_testing
