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

inline Problem problem_of(const GeneratedCase& made, const GenerateRequest& request) {
  Problem problem;
  problem.options = parse_json(made.metadata.at("plumbline"), "test")["options"];
  problem.outputs = request.outputs;
  for (const GeneratedTensor& tensor : made.tensors) {
    const std::string place = tensor.name.substr(0, tensor.name.find('.'));
    StoredTensor view = view_of(tensor);
    if (place == "in") problem.in.emplace(tensor.name.substr(3), view);
    if (place == "cot") problem.cot.emplace(tensor.name.substr(4), view);
  }
  return problem;
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
