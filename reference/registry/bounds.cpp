#include "reference/registry/bounds.hpp"

namespace plumbline {

void add_bounds(const Operation& operation, const Problem& problem, Evaluation how,
                const Contract& contract, Result& result) {
  how.contract = &contract;
  Result bounded = operation.evaluate(problem, how);
  const auto take = [](std::vector<Value>& values, std::vector<Value>& from) {
    for (std::size_t i = 0; i < values.size() && i < from.size(); ++i) {
      values[i].bound = std::move(from[i].bound);
      values[i].bound2 = std::move(from[i].bound2);
      values[i].gauge = std::move(from[i].gauge);
    }
  };
  take(result.outputs, bounded.outputs);
  take(result.gradients, bounded.gradients);
}

}  // namespace plumbline
