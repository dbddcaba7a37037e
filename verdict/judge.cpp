#include "verdict/judge.hpp"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

struct FormatRange {
  Format format;
  Dtype dtype;
  double overflow;  // what rounds to no finite number any more
  double largest;   // what converters that saturate return instead; 0: none do
};
constexpr double most(int exponent, int precision) {  // largest number and half its ulp
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 2;
  double half = 1;
  for (int i = 0; i < precision; ++i) half /= 2;
  return power * (2 - half);
}
constexpr FormatRange ranges[] = {
    {Format::f32, Dtype::f32, most(127, 24), 0},
    {Format::f64, Dtype::f64, std::numeric_limits<double>::infinity(), 0},
    {Format::tf32, Dtype::f32, most(127, 11), 0},
    {Format::f16, Dtype::f16, most(15, 11), 0},
    {Format::bf16, Dtype::bf16, most(127, 8), 0},
    // The top code of e4m3 is NaN, so its largest number is 448 and not 480.
    {Format::f8_e4m3, Dtype::f8_e4m3, 464, 448},
    {Format::f8_e5m2, Dtype::f8_e5m2, most(15, 3), 57344},
};

Format format_of(Dtype dtype) {
  for (const FormatRange& range : ranges) {
    if (range.dtype == dtype) return range.format;
  }
  return Format::f64;
}

std::string kind_name(Kind kind) {
  return kind == Kind::real ? "real numbers" : kind == Kind::integer ? "integers" : "booleans";
}
Kind kind_of(Dtype dtype) {
  return is_real(dtype) ? Kind::real : dtype == Dtype::boolean ? Kind::boolean : Kind::integer;
}

std::string described(double x) {
  return std::isnan(x) ? "NaN" : std::isinf(x) ? (x > 0 ? "inf" : "-inf") : "a number";
}

// The range of the finite values of each row, a row being the last axis.
std::vector<long double> row_ranges(const Value& value) {
  const std::size_t width =
      value.shape.empty() ? 1
                          : static_cast<std::size_t>(std::max<std::int64_t>(value.shape.back(), 1));
  std::vector<long double> ranges_of_rows(value.high.size() / width + 1, 0);
  for (std::size_t row = 0; row * width < value.high.size(); ++row) {
    long double low = infinity, high = -infinity;
    for (std::size_t i = row * width; i < std::min((row + 1) * width, value.high.size()); ++i) {
      if (!std::isfinite(value.high[i])) continue;
      low = std::min<long double>(low, value.high[i]);
      high = std::max<long double>(high, value.high[i]);
    }
    if (high > low) ranges_of_rows[row] = high - low;
  }
  return ranges_of_rows;
}

// Below the normal numbers a format has no relative accuracy that an error could be seen against.
double smallest_normal(const Storage& storage) { return storage.least / (2 * storage.unit); }

JudgedElement judge_real(const Value& value, std::size_t i, Pair actual, const Storage& storage,
                         long double range) {
  JudgedElement e;
  e.position = static_cast<std::int64_t>(i);
  e.wanted = {value.high[i], i < value.low.size() ? value.low[i] : 0};
  e.actual = actual;
  const auto [tier1, tier2] = stored_bound(value, i, storage);
  e.bound = tier1, e.bound2 = tier2;
  const bool stored = value.bound.empty() || tier1 > 2 * static_cast<long double>(value.bound[i]);
  e.dominating = stored ? "storage" : "arithmetic";
  if (!std::isfinite(e.wanted.high)) {
    const bool same =
        e.wanted.high == actual.high || (std::isnan(e.wanted.high) && std::isnan(actual.high));
    if (same) return e;
    e.verdict = Verdict::fail;
    e.margin = e.margin2 = e.off = infinity;
    e.why = described(actual.high) + ", where " + described(e.wanted.high) + " was expected";
    return e;
  }
  e.ulp = ulp_at(storage.dtype, e.wanted.high);
  const long double size = std::fabs(static_cast<long double>(e.wanted.high));
  const bool may_overflow = size + e.bound >= storage.overflow;
  if (!std::isfinite(actual.high)) {
    const bool sign = std::isnan(actual.high) || e.wanted.high == 0 ||
                      std::signbit(actual.high) == std::signbit(e.wanted.high);
    if (may_overflow && sign && (std::isinf(actual.high) || storage.largest > 0)) {
      const bool known = std::isfinite(static_cast<double>(e.bound));
      e.verdict = known ? Verdict::pass : Verdict::unprovable;
      e.margin = e.margin2 = known ? 0 : 1;
      return e;
    }
    e.verdict = Verdict::fail;
    e.margin = e.margin2 = e.off = infinity;
    e.why = described(actual.high) + ", where a number was expected";
    return e;
  }
  e.off = difference(actual, e.wanted);
  const bool same_sign = std::signbit(actual.high) == std::signbit(e.wanted.high);
  if (may_overflow && storage.largest > 0 && same_sign && e.off > e.bound) {
    // A converter that saturates returns the largest number for whatever lies beyond it, and nothing smaller.
    const long double short_of = storage.largest - std::fabs(static_cast<long double>(actual.high));
    const bool beyond = size - (value.bound.empty() ? 0 : value.bound[i]) >= storage.largest;
    if (beyond ? short_of == 0 : std::fabs(short_of) <= e.bound) e.off = short_of;
  }
  const auto ratio = [&](long double bound) {
    return e.off == 0 ? 0 : bound == 0 ? infinity : std::isinf(bound) ? 0 : e.off / bound;
  };
  e.margin = ratio(e.bound);
  e.margin2 = ratio(e.bound2);
  const long double gauge = value.gauge.empty() ? 0 : value.gauge[i];
  const long double scale =
      std::max({gauge, range, static_cast<long double>(smallest_normal(storage)),
                static_cast<long double>(storage.faint)});
  if (!(e.bound >= 0) || std::isinf(e.bound)) {
    e.verdict = Verdict::unprovable;
    e.margin = e.margin2 = 0;
  } else if (e.off > e.bound) {
    e.verdict = Verdict::fail;
  } else if (e.bound > 0 && e.bound >= scale) {
    e.verdict = Verdict::unprovable;
  } else if (e.off > e.bound2) {
    e.verdict = Verdict::suspect;
  }
  return e;
}

}  // namespace

Verdict worse(Verdict a, Verdict b) { return std::max(a, b); }

Storage storage_of(const KernelContract& contract, Dtype actual) {
  Storage storage;
  double coarsest = 0;
  for (const Format format : {contract.output, format_of(actual)}) {
    const FormatShape shape = shape_of(format);
    const double unit = std::ldexp(1.0, -shape.precision);
    const int subnormal =
        contract.flush_to_zero ? shape.least_exponent : shape.least_exponent - shape.precision + 1;
    storage.unit = std::max(storage.unit, unit);
    storage.least = std::max(storage.least, std::ldexp(1.0, subnormal));
    for (const FormatRange& range : ranges) {
      if (range.format != format) continue;
      storage.overflow = std::min(storage.overflow, range.overflow);
      if (range.largest > 0) storage.largest = range.largest;
      if (unit > coarsest) storage.dtype = range.dtype;
    }
    coarsest = std::max(coarsest, unit);
  }
  const bool wide = contract.accumulator.format == Format::f64;
  const FormatShape computed = shape_of(wide ? Format::f64 : Format::f32);
  storage.faint = std::ldexp(1.0, computed.least_exponent + computed.precision);
  return storage;
}

StoredBound stored_bound(const Value& value, std::size_t i, const Storage& storage) {
  const long double size = std::fabs(static_cast<long double>(value.high[i]));
  const auto stored = [&](long double bound) -> long double {
    if (bound == 0 && size == 0) return 0;  // an exact zero is stored as one
    return bound + static_cast<long double>(storage.unit) * (size + bound) + storage.least;
  };
  StoredBound both;
  both.tier1 = stored(value.bound.empty() ? 0 : value.bound[i]);
  both.tier2 = value.bound2.empty() ? both.tier1 : std::min(both.tier1, stored(value.bound2[i]));
  return both;
}

void note(TensorVerdict& tensor, JudgedElement element, std::size_t worst) {
  const auto before = [](const JudgedElement& a, const JudgedElement& b) {
    if (a.verdict != b.verdict) return a.verdict > b.verdict;
    if (a.margin != b.margin) return a.margin > b.margin;
    return a.margin2 > b.margin2;
  };
  auto& list = tensor.worst;
  if (list.size() >= worst && (worst == 0 || !before(element, list.back()))) return;
  list.insert(std::upper_bound(list.begin(), list.end(), element, before), std::move(element));
  if (list.size() > worst) list.pop_back();
}

TensorVerdict judge(const Value& value, const StoredTensor& actual, const KernelContract& contract,
                    std::size_t worst) {
  TensorVerdict tensor;
  tensor.actual = actual.name;
  tensor.shape = value.shape;
  tensor.dtype = actual.dtype;
  tensor.kind = value.kind;
  if (actual.shape != value.shape) {
    tensor.reason = "shape " + to_string(actual.shape) + ", expected " + to_string(value.shape);
  } else if (kind_of(actual.dtype) != value.kind) {
    // Flags are often written as bytes.
    const bool bytes = value.kind == Kind::boolean && actual.dtype == Dtype::u8;
    if (!bytes)
      tensor.reason = kind_name(kind_of(actual.dtype)) + ", expected " + kind_name(value.kind);
  }
  if (!tensor.reason.empty()) {
    tensor.verdict = Verdict::fail;
    tensor.margin = tensor.margin2 = infinity;
    return tensor;
  }
  tensor.count = count_of(value.shape);
  tensor.margins.reserve(static_cast<std::size_t>(tensor.count));
  const Storage storage = storage_of(contract, actual.dtype);
  const std::vector<long double> ranges_of_rows = row_ranges(value);
  const std::size_t width =
      value.shape.empty() ? 1
                          : static_cast<std::size_t>(std::max<std::int64_t>(value.shape.back(), 1));
  for (std::int64_t at = 0; at < tensor.count; ++at) {
    const auto i = static_cast<std::size_t>(at);
    JudgedElement e;
    if (value.kind == Kind::real) {
      e = judge_real(value, i, pair_element(actual, at), storage, ranges_of_rows[i / width]);
    } else {
      e.position = at;
      e.wanted_integer = value.kind == Kind::integer ? value.integers[i] : value.booleans[i];
      e.actual_integer = integer_element(actual, at);
      if (value.kind == Kind::boolean) e.actual_integer = e.actual_integer != 0;
      if (e.wanted_integer != e.actual_integer) {
        e.verdict = Verdict::fail;
        e.margin = e.margin2 = e.off = infinity;
      }
    }
    ++tensor.counts[static_cast<std::size_t>(e.verdict)];
    tensor.verdict = worse(tensor.verdict, e.verdict);
    tensor.margin = std::max(tensor.margin, e.margin);
    tensor.margin2 = std::max(tensor.margin2, e.margin2);
    tensor.margins.push_back(static_cast<float>(e.margin));
    note(tensor, std::move(e), worst);
  }
  return tensor;
}

}  // namespace plumbline
