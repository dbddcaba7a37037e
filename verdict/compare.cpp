#include "verdict/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "reference/error.hpp"

namespace plumbline {
namespace {

using ByName = std::map<std::string, const StoredTensor*, std::less<>>;

ByName by_name(const ComparedFile& file) {
  ByName map;
  for (const StoredTensor& tensor : file.tensors) map.emplace(tensor.name, &tensor);
  return map;
}
const StoredTensor* find(const ByName& tensors, std::string_view name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : found->second;
}

bool is_result(std::string_view name) {
  if (name.starts_with("peer.")) name.remove_prefix(5);
  return (name.starts_with("out.") || name.starts_with("grad.")) && !name.ends_with(".lo");
}
bool is_input(std::string_view name) {
  return name.starts_with("in.") || name.starts_with("given.") || name.starts_with("cot.");
}

// The tensor with its remainder beside it. A remainder of another size or dtype is no remainder.
StoredTensor with_low(const StoredTensor& tensor, const ByName& tensors, const std::string& path) {
  StoredTensor both = tensor;
  if (const StoredTensor* low = find(tensors, tensor.name + ".lo")) {
    if (low->dtype != Dtype::f64 || low->shape != tensor.shape || !is_real(tensor.dtype)) {
      throw Error(path + " tensor " + low->name,
                  std::string(name_of(low->dtype)) + " " + to_string(low->shape),
                  "F64 " + to_string(tensor.shape) + " beside real numbers");
    }
    both.low = std::make_shared<const StoredTensor>(*low);
  }
  return both;
}

std::string kind_of(Dtype dtype) {
  return dtype == Dtype::boolean ? "booleans" : is_real(dtype) ? "real numbers" : "integers";
}

void note_worst(TensorComparison& result, std::int64_t position) {
  result.worst = index_of(result.shape, position);
  result.has_worst = true;
}

void compare_integers(const StoredTensor& golden, const StoredTensor& actual,
                      TensorComparison& result) {
  for (std::int64_t i = 0; i < result.count; ++i) {
    const std::int64_t want = integer_element(golden, i), got = integer_element(actual, i);
    if (want == got) continue;
    if (result.unequal++ > 0) continue;
    note_worst(result, i);
    result.worst_golden_integer = want;
    result.worst_actual_integer = got;
  }
  if (result.unequal > 0) result.reason = std::to_string(result.unequal) + " elements differ";
}

void compare_reals(const StoredTensor& golden, const StoredTensor& actual,
                   TensorComparison& result) {
  for (std::int64_t i = 0; i < result.count; ++i) {
    const Pair want = pair_element(golden, i), got = pair_element(actual, i);
    const bool finite = std::isfinite(want.high), both = finite && std::isfinite(got.high);
    if (finite)
      result.largest = std::max(result.largest, std::fabs(static_cast<long double>(want.high)));
    if (!both) {
      const bool same = want.high == got.high || (std::isnan(want.high) && std::isnan(got.high));
      if (same) continue;
      ++result.unequal;
      if (result.nan_or_inf++ > 0) continue;
      note_worst(result, i);
      result.worst_golden = want;
      result.worst_actual = got;
      continue;
    }
    const long double off = difference(want, got);
    if (off == 0) continue;
    ++result.unequal;
    const long double size = std::fabs(static_cast<long double>(want.high));
    if (size > 0) result.max_relative = std::max(result.max_relative, off / size);
    result.max_ulp = std::max(result.max_ulp, off / ulp_at(actual.dtype, want.high));
    if (off <= result.max_absolute) continue;
    result.max_absolute = off;
    if (result.nan_or_inf > 0) continue;
    note_worst(result, i);
    result.worst_golden = want;
    result.worst_actual = got;
  }
  if (result.max_absolute > 0) {
    result.max_scaled = result.largest > 0 ? result.max_absolute / result.largest
                                           : std::numeric_limits<long double>::infinity();
  }
  if (result.nan_or_inf > 0) {
    result.reason = std::to_string(result.nan_or_inf) + " NaN or infinities out of place";
  } else if (result.max_scaled > result.limit) {
    result.reason = "off by more than the limit";
  }
}

TensorComparison compare_tensor(const StoredTensor& golden, const StoredTensor& actual,
                                std::optional<Precision> precision) {
  TensorComparison result;
  result.golden = golden.name;
  result.actual = actual.name;
  result.shape = golden.shape;
  result.dtype = actual.dtype;
  result.real = is_real(golden.dtype);
  if (golden.shape != actual.shape) {
    result.reason = "shape " + to_string(actual.shape) + ", golden " + to_string(golden.shape);
  } else if (kind_of(golden.dtype) != kind_of(actual.dtype)) {
    result.reason = kind_of(actual.dtype) + ", golden " + kind_of(golden.dtype);
  } else {
    result.count = count_of(golden.shape);
    if (result.real) {
      const bool own = !actual.name.starts_with("peer.");
      result.limit = limit_of(actual.dtype, own, precision, golden.low && actual.low);
      compare_reals(golden, actual, result);
    } else {
      compare_integers(golden, actual, result);
    }
  }
  result.agreement = result.reason.empty() ? Agreement::agree : Agreement::disagree;
  return result;
}

bool same_bytes(const StoredTensor& a, const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto bytes = static_cast<std::size_t>(count_of(a.shape)) * size_of(a.dtype);
  return bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0;
}

}  // namespace

// | the actual holds                                        | limit  | room it leaves                               |
// |---------------------------------------------------------|--------|----------------------------------------------|
// | F8_E4M3, F8_E5M2                                        | 2^-2   | half an ulp is 2^-4, 2^-3                     |
// | BF16                                                    | 2^-7   | twice half an ulp                            |
// | F16                                                     | 2^-9   | four times half an ulp                       |
// | F32, and our own F64 computed in f32                    | 2^-15  | 2^9 roundings                                |
// | F64                                                     | 2^-40  | 2^13 roundings                               |
// | our own F64 pairs computed in f192, mp50 or mp100,      | 2^-95  | a pair is good to 2^-102 (1e-31)             |
// | against a golden that is a pair too                     |        |                                              |
long double limit_of(Dtype actual, bool own_result, std::optional<Precision> precision,
                     bool both_have_low) {
  const auto two_to = [](int exponent) { return std::ldexp(1.0L, exponent); };
  switch (actual) {
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2: return two_to(-2);
    case Dtype::bf16: return two_to(-7);
    case Dtype::f16: return two_to(-9);
    case Dtype::f32: return two_to(-15);
    default: break;
  }
  if (!own_result || !precision || *precision == Precision::f64) return two_to(-40);
  if (*precision == Precision::f32) return two_to(-15);
  return two_to(both_have_low ? -95 : -40);
}

Comparison compare(const ComparedFile& golden, const ComparedFile& actual) {
  const ByName wanted = by_name(golden), got = by_name(actual);
  Comparison result;
  result.golden = golden.path;
  result.actual = actual.path;
  std::size_t compared = 0;
  for (const auto& [name, tensor] : wanted) {
    if (is_input(name)) {
      const StoredTensor* other = find(got, name);
      if (other != nullptr && !same_bytes(*tensor, *other)) result.inputs_differ.push_back(name);
    }
    if (!is_result(name) || name.starts_with("peer.")) continue;
    const StoredTensor* other = find(got, name);
    if (other == nullptr) other = find(got, "peer." + name);
    if (other == nullptr) {
      TensorComparison missing;
      missing.golden = name;
      missing.shape = tensor->shape;
      result.tensors.push_back(std::move(missing));
      continue;
    }
    ++compared;
    result.tensors.push_back(compare_tensor(with_low(*tensor, wanted, golden.path),
                                            with_low(*other, got, actual.path), actual.precision));
    result.agree = result.agree && result.tensors.back().agreement == Agreement::agree;
  }
  for (const auto& [name, tensor] : got) {
    const std::string plain = name.starts_with("peer.") ? name.substr(5) : name;
    if (is_result(name) && find(wanted, plain) == nullptr) result.not_in_golden.push_back(name);
  }
  if (compared == 0) {
    throw Error(actual.path,
                "no out.*, grad.*, peer.out.* or peer.grad.* tensor that is in " + golden.path,
                "at least one to compare");
  }
  return result;
}

}  // namespace plumbline
