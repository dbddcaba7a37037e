// verdict/hints.hpp
//
// What may be wrong with tensors that failed. A cause is told only where it explains every element: the numbers fit
// within their bounds once it is undone, or the wrong elements fill a part of the tensor. Nothing is estimated.
#pragma once
#include <string>
#include <vector>

#include "verdict/check.hpp"

namespace plumbline {

// Of every failed tensor of the report, then of the case as a whole. `problem` is what they were judged from.
std::vector<std::string> hints_of(const CheckQuestion& question, const CheckSettings& settings,
                                  const Problem& problem, const std::vector<ActualTensor>& actual,
                                  const CheckReport& report);

// Where the wrong elements stand: one row, one head, a range of keys, the end of an axis. Empty where they are
// everywhere or follow no axis.
std::vector<std::string> places_of(const TensorVerdict& tensor);
// A constant factor, a constant summand, a shift by one along an axis, another order of axes.
std::vector<std::string> patterns_of(const Value& value, const StoredTensor& actual,
                                     const TensorVerdict& tensor, const Storage& storage);
// Options, presets, inputs and contracts under which every failed tensor lies within its bounds.
std::vector<std::string> alternatives_of(const CheckQuestion& question,
                                         const CheckSettings& settings, const Problem& problem,
                                         const std::vector<ActualTensor>& failed);

}  // namespace plumbline
