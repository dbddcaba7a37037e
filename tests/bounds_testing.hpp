// tests/bounds_testing.hpp: generated problems under a contract, executions of them, and how much of a bound they use.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fixtures/generate.hpp"
#include "reference/numeric/simulated.hpp"
#include "tests/generator_testing.hpp"

namespace plumbline {

// A layer is judged from the selection that was made: another execution may select another key of two that are equal
// within their bounds. False where nothing is selected.
inline bool give_selection(const Operation& op, Problem& problem) {
  const bool selects = std::any_of(op.given.begin(), op.given.end(), [](const TensorInfo& info) {
    return info.name == "indexer_indices";
  });
  if (!selects || problem.options.value("indexer", Json()).is_null()) return false;
  Problem asking = problem;
  asking.outputs = {"indexer_indices"};
  const Result made = op.evaluate(asking, {.precision = Precision::f64});
  const Value* const indices = made.find("indexer_indices");
  const auto held = std::make_shared<const std::vector<std::int32_t>>(indices->integers);
  StoredTensor view;
  view.name = "given.indexer_indices";
  view.dtype = Dtype::i32;
  view.shape = indices->shape;
  view.stride = row_major(view.shape);
  view.data = reinterpret_cast<const std::byte*>(held->data());
  view.owner = held;
  view.present = true;
  problem.given["indexer_indices"] = view;
  return true;
}

// Largest |execution − value| over each tier, by output and gradient.
struct Use {
  double proven = 0, likely = 0;
  std::int64_t elements = 0, outside = 0, outside_likely = 0, infinite = 0, unprovable = 0,
               bounded = 0;
};
using Uses = std::map<std::string, Use>;

inline void compare(const Value& bounded, const Value& executed, const std::string& name,
                    Uses& uses) {
  if (bounded.kind != Kind::real) return;
  Use& use = uses[name];
  for (std::size_t i = 0; i < bounded.high.size(); ++i) {
    const double v = bounded.high[i], x = executed.high[i];
    if (!std::isfinite(v)) continue;
    ++use.elements;
    if (bounded.bound[i] > 0) ++use.bounded;
    const double error = std::fabs((x - v) - bounded.low[i]);
    if (std::isinf(bounded.bound[i])) ++use.infinite;
    // Where even the terms drown in underflow, nothing can be proven of digits.
    if (bounded.bound[i] >= bounded.gauge[i] && bounded.gauge[i] > 1e-35) ++use.unprovable;
    if (!(error <= bounded.bound[i])) ++use.outside;
    if (!(error <= bounded.bound2[i])) ++use.outside_likely;
    if (error > 0 && bounded.bound[i] > 0)
      use.proven = std::max(use.proven, error / bounded.bound[i]);
    if (error > 0 && bounded.bound2[i] > 0)
      use.likely = std::max(use.likely, error / bounded.bound2[i]);
  }
}
inline void compare(const Result& bounded, const Result& executed, Uses& uses) {
  for (const Value& value : bounded.outputs) {
    if (const Value* x = executed.find(value.name)) compare(value, *x, value.name, uses);
  }
  for (const Value& value : bounded.gradients) {
    if (const Value* x = executed.find(value.name, true))
      compare(value, *x, "d " + value.name, uses);
  }
}

}  // namespace plumbline
