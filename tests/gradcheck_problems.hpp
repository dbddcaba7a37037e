// tests/gradcheck_problems.hpp: small problems of each operation, made in memory, and what a
// passing report is.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gradcheck/gradcheck.hpp"
#include "reference/error.hpp"

namespace plumbline {

inline const double nan = std::numeric_limits<double>::quiet_NaN();
inline const double inf = std::numeric_limits<double>::infinity();

template <class U>
StoredTensor stored(std::string name, Dtype dtype, Shape shape, std::vector<U> values) {
  const auto owner = std::make_shared<const std::vector<U>>(std::move(values));
  EXPECT_EQ(static_cast<std::size_t>(count_of(shape)), owner->size()) << name;
  StoredTensor tensor;
  tensor.name = std::move(name);
  tensor.data = reinterpret_cast<const std::byte*>(owner->data());
  tensor.dtype = dtype;
  tensor.stride = row_major(shape);
  tensor.shape = std::move(shape);
  tensor.owner = owner;
  tensor.present = true;
  return tensor;
}
inline StoredTensor reals(const std::string& name, Shape shape, std::vector<double> values) {
  return stored("in." + name, Dtype::f64, std::move(shape), std::move(values));
}
inline StoredTensor flags(const std::string& name, Shape shape, std::vector<std::uint8_t> values) {
  return stored("in." + name, Dtype::boolean, std::move(shape), std::move(values));
}

// Numbers without pattern in [-1, 1], never 0: the fractional parts of multiples of the golden
// ratio.
inline StoredTensor spread(const std::string& name, Shape shape, double size = 1) {
  std::vector<double> values(static_cast<std::size_t>(count_of(shape)));
  double x = static_cast<double>(name.size()) / 8;
  for (double& value : values) {
    x = std::fmod(x + 0.6180339887498949, 1.0);
    value = size * (2 * x - 1);
  }
  return reals(name, std::move(shape), std::move(values));
}

inline void set(Problem& problem, const std::string& name, std::size_t at, double value) {
  StoredTensor& tensor = problem.in.at(name);
  auto values = *static_cast<const std::vector<double>*>(tensor.owner.get());
  values.at(at) = value;
  tensor = reals(name, tensor.shape, std::move(values));
}

// Rows at tokens 0 … 4 of 8, blocks of 2: row 0 sees no block, rows 1 and 2 one, 3 and 4 two;
// blocks 2 and 3 are seen by nobody.
inline Problem csa_problem(bool raw) {
  Problem problem;
  problem.in = {{"query", spread("query", {1, 5, 2, 3})},
                {"compressed", spread("compressed", {1, 4, 3})},
                {"kv", spread("kv", {1, 8, 3})},
                {"sink", spread("sink", {2})}};
  if (raw) {
    problem.in["index_q"] = spread("index_q", {1, 5, 2, 2});
    problem.in["index_k"] = spread("index_k", {1, 4, 2});
    problem.in["index_w"] = spread("index_w", {1, 5, 2});
  } else {
    problem.in["scores"] = spread("scores", {1, 5, 4});
  }
  problem.options = {{"m", 2}, {"window", 2}, {"mask", {{"query_offset", 0}}}};
  return problem;
}
inline Problem dsa_problem(bool raw) {
  Problem problem;
  problem.in = {{"query", spread("query", {1, 4, 2, 3})}, {"key", spread("key", {1, 4, 1, 3})}};
  if (raw) {
    problem.in["index_q"] = spread("index_q", {1, 4, 2, 2});
    problem.in["index_k"] = spread("index_k", {1, 4, 2});
    problem.in["index_w"] = spread("index_w", {1, 4, 2});
  } else {
    problem.in["scores"] = spread("scores", {1, 4, 4});
  }
  return problem;
}
inline Problem scores_problem() {
  Problem problem;
  problem.in = {{"q", spread("q", {1, 3, 2, 2})},
                {"k", spread("k", {1, 3, 2})},
                {"w", spread("w", {1, 3, 2})}};
  problem.cot["scores"] = spread("cotangent", {1, 3, 3});
  return problem;
}

inline const GradcheckInput& of(const GradcheckReport& report, const std::string& name) {
  for (const GradcheckInput& input : report.inputs) {
    if (input.name == name) return input;
  }
  throw Error(name, "nothing", "an input of the report");
}

inline void expect_pass(const GradcheckReport& report, double digits = 60) {
  EXPECT_TRUE(report.pass()) << notes_of(report);
  EXPECT_FALSE(report.inputs.empty());
  for (const GradcheckInput& input : report.inputs) {
    EXPECT_GE(input.digits, digits) << report.op << " " << input.name << "\n" << notes_of(report);
    EXPECT_EQ(input.share(), 100) << input.name;
  }
}

}  // namespace plumbline
