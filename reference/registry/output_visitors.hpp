// reference/registry/output_visitors.hpp
//
// An operation's outputs and gradients, through their fields(), as Values: each real number as a pair of doubles.
#pragma once
#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/registry/operation.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

template <class U> constexpr Kind kind_of() {
  if constexpr (std::is_same_v<U, std::int32_t>) return Kind::integer;
  if constexpr (std::is_same_v<U, std::uint8_t>) return Kind::boolean;
  return Kind::real;
}

// The next number of 20 bits: what a bound lost in doubles, and the same bytes from every elementary library.
inline double rounded_up(double bound) {
  if (!(bound > 0) || !std::isfinite(bound)) return bound;
  int exponent = 0;
  const double fraction = std::frexp(bound, &exponent);
  return std::ldexp(std::ceil(fraction * (0x1p20 + 0x1p-8)), exponent - 20);
}

struct OutputLister {
  std::vector<OutputInfo> list;
  template <class U> void operator()(std::string_view name, Array<U>&, std::string_view letters,
                                     std::string_view doc) {
    list.push_back(
        {std::string(name), std::string(letters), std::string(doc), kind_of<U>(), false});
  }
  template <class U> void on_request(std::string_view name, Array<U>& a, std::string_view letters,
                                     std::string_view doc) {
    (*this)(name, a, letters, doc);
    list.back().on_request = true;
  }
};

class ValueCollector {
 public:
  ValueCollector(const Tensors& given, std::string prefix)
      : given_(given), prefix_(std::move(prefix)) {}
  std::vector<Value> values;

  template <class U> void operator()(std::string_view name, Array<U>& array, std::string_view = "",
                                     std::string_view = "") {
    if (array.given()) values.push_back(convert(name, replaced(name, array)));
  }
  template <class U>
  void on_request(std::string_view name, Array<U>& array, std::string_view, std::string_view) {
    (*this)(name, array);
  }

 private:
  template <class U> static const U& plain(const U& x) { return x; }
  template <class V> static const V& plain(const Bounded<V>& x) { return x.value(); }
  static double plain(const Simulated& x) {
    if (Tape* const tape = this_execution().tape) tape->output(x.node());
    return x.value();
  }
  template <class U> static void take_bounds(const U& x, Value& value) {
    value.bound.push_back(rounded_up(x.total()));
    value.bound2.push_back(rounded_up(this_arithmetic()->nearest ? x.likely() : x.total()));
    value.gauge.push_back(x.gauge());
  }
  template <class U> const Array<U>& replaced(std::string_view name, Array<U>& array) const;
  template <class U> Value convert(std::string_view name, const Array<U>& array) const;

  const Tensors& given_;  // outputs that the case supplies: they stand in for what was computed
  std::string prefix_;
};

template <class U>
const Array<U>& ValueCollector::replaced(std::string_view name, Array<U>& array) const {
  const auto found = given_.find(name);
  if (found == given_.end()) return array;
  const StoredTensor& tensor = found->second;
  if (tensor.shape != array.shape) {
    throw Error(tensor.name, "shape " + to_string(tensor.shape), to_string(array.shape));
  }
  std::vector<std::int64_t> index(array.shape.size(), 0);
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    std::size_t rest = i;
    for (std::size_t axis = index.size(); axis-- > 0;) {
      index[axis] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(array.shape[axis]));
      rest /= static_cast<std::size_t>(array.shape[axis]);
    }
    if constexpr (kind_of<U>() == Kind::real) array.values[i] = Fetch<U>::element(tensor, index);
    if constexpr (kind_of<U>() == Kind::integer)
      array.values[i] = static_cast<U>(integer_at(tensor, Index(index)));
    if constexpr (kind_of<U>() == Kind::boolean)
      array.values[i] = boolean_at(tensor, Index(index)) ? 1 : 0;
  }
  return array;
}

template <class U>
Value ValueCollector::convert(std::string_view name, const Array<U>& array) const {
  Value value;
  value.name = name;
  value.kind = kind_of<U>();
  value.shape = array.shape;
  if constexpr (kind_of<U>() == Kind::integer) value.integers = array.values;
  if constexpr (kind_of<U>() == Kind::boolean) value.booleans = array.values;
  if constexpr (kind_of<U>() == Kind::real) {
    value.high.reserve(array.values.size());
    value.low.reserve(array.values.size());
    for (const U& number : array.values) {
      if constexpr (IsBounded<U>::value) take_bounds(number, value);
      const auto& x = plain(number);
      const DoublePair pair = split(x);
      if (is_finite(x) && !std::isfinite(pair.high)) {
        throw Error(prefix_ + value.name, "a value beyond the range of double",
                    "results that F64 can hold");
      }
      value.high.push_back(pair.high);
      value.low.push_back(pair.low);
    }
    if constexpr (std::is_same_v<U, mp100>)
      value.exact = std::make_shared<const std::vector<mp100>>(array.values);
  }
  return value;
}

}  // namespace plumbline
