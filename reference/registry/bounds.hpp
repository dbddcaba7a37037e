// reference/registry/bounds.hpp: bounds of a contract beside values of any precision.
#pragma once
#include "reference/registry/operation.hpp"

namespace plumbline {

// The values of `result` stay; bound, bound2 and gauge come from an evaluation of their own under the contract.
void add_bounds(const Operation& operation, const Problem& problem, Evaluation how,
                const Contract& contract, Result& result);

}  // namespace plumbline
