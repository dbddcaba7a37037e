// verdict/compare.hpp
//
// The numbers of one file against those of another, tensor by tensor: out.* and grad.* of the golden against the
// same tensors of the actual, or against peer.out.* and peer.grad.* where the actual has no own ones.
// Guarantees: no tensor of either side is left out in silence; NaN and infinities must stand in the same places;
// integers and flags must be equal. Until certified bounds judge it, real tensors are judged by
// max |golden − actual| ≤ limit · largest finite |golden|, with the limits of `limit_of`.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/tensor/stored_tensor.hpp"
#include "verdict/elements.hpp"

namespace plumbline {

struct ComparedFile {
  std::string path;
  std::vector<StoredTensor> tensors;   // by their full names, x.lo among them
  std::optional<Precision> precision;  // that of its own results, if it says so
};

enum class Agreement { agree, disagree, not_in_actual };

struct TensorComparison {
  std::string golden, actual;  // full names
  Agreement agreement = Agreement::not_in_actual;
  std::string reason;  // of a disagreement, one clause
  Shape shape;
  Dtype dtype = Dtype::f64;  // of the actual
  bool real =
      true;  // else integers or booleans, and only `count`, `unequal` and `worst` have a meaning
  std::int64_t count = 0;
  std::int64_t unequal = 0;      // elements that differ at all
  std::int64_t nan_or_inf = 0;   // elements where NaN, inf and finite do not coincide
  long double largest = 0;       // finite |golden|
  long double max_absolute = 0;  // over elements finite on both sides, like the next three
  long double max_relative = 0;  // to |golden|, where that is not 0
  long double max_scaled = 0;    // to `largest`; infinite when that is 0 and a difference is not
  long double max_ulp = 0;       // of the actual's dtype at |golden|
  long double limit = 0;
  Shape
      worst;  // index of the first NaN or inf mismatch, else of max_absolute, else of the first unequal element
  bool has_worst = false;
  Pair worst_golden, worst_actual;
  std::int64_t worst_golden_integer = 0, worst_actual_integer = 0;
};

struct Comparison {
  std::string golden, actual;             // paths
  std::vector<TensorComparison> tensors;  // in the order of names
  std::vector<std::string>
      not_in_golden;  // results of the actual that the golden says nothing about
  std::vector<std::string>
      inputs_differ;  // in.*, given.*, cot.* present on both sides with other bytes
  bool agree = true;
};

// Error when the two have no tensor in common.
Comparison compare(const ComparedFile& golden, const ComparedFile& actual);

// What a tensor of the actual can be asked for, relative to the golden tensor's largest value.
long double limit_of(Dtype actual, bool own_result, std::optional<Precision> precision,
                     bool both_have_low);

std::string_view name_of(Agreement agreement);
nlohmann::json to_json(const Comparison& comparison);
// "0.69314718055994529" and "0x1.62e42fefa39efp-1", the remainder after a plus.
std::string decimal(Pair value);
std::string hexadecimal(Pair value);

}  // namespace plumbline
