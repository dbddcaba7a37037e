// reference/attention/selection.hpp
//
// The keys a row attends over: the visible ones, or those of them that `selected` or `indices`
// name.
// Guarantees: ascending, so that both ways of naming a set give the same bits; a hidden key is
// never among them.
// Under duplicates "multiset" a key named n times stands in the list n times and so weighs
// n·exp(c).
// Errors, in real rows: an index below −1 or not below the number of keys; an invisible key under
// strict_selection; a key a second time under duplicates "error".
#pragma once
#include <vector>

#include "reference/attention/options.hpp"

namespace plumbline::attention {

struct Selection {
  StoredTensor selected, indices;  // [B, T, K] or [B, T, k]; at most one of them
  bool strict = false;
  Duplicates duplicates = Duplicates::error;
};

void check(const Selection& selection);  // Error when both are given
std::vector<std::int64_t> keys_of(const Selection& selection, const Visibility& visibility,
                                  std::int64_t b, std::int64_t t);

}  // namespace plumbline::attention
