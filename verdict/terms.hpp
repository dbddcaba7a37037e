// verdict/terms.hpp
//
// Which part of the contract's arithmetic makes the bound of an element as large as it is: the bound is evaluated again
// without the errors of elementary functions, and without each rounding point; what it loses is that part's share, and
// the rest belongs to sums and products.
#pragma once
#include "verdict/check.hpp"

namespace plumbline {

// Names the dominating term of the worst elements of the report. `base` holds the bounds of `problem`. Evaluations that
// took much are not repeated: there the term stays "arithmetic".
void name_dominating_terms(const CheckQuestion& question, const CheckSettings& settings,
                           const Problem& problem, const std::vector<ActualTensor>& actual,
                           const Result& base, std::vector<TensorVerdict>& tensors);

}  // namespace plumbline
