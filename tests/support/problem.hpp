// tests/support/problem.hpp
//
// Problems for tests, built from C++ vectors: tensors that own their numbers, read back as doubles, and gathered
// along an axis. Results compared bit by bit.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "reference/registry/operation.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::support {

using Numbers = std::vector<double>;
using Integers = std::vector<std::int32_t>;
using Flags = std::vector<std::uint8_t>;

template <class U> StoredTensor own(Shape shape, Dtype dtype, std::vector<U> values) {
  const auto held = std::make_shared<const std::vector<U>>(std::move(values));
  if (static_cast<std::int64_t>(held->size()) != count_of(shape)) {
    throw std::logic_error(std::to_string(held->size()) + " values for " + to_string(shape));
  }
  StoredTensor tensor;
  tensor.data = reinterpret_cast<const std::byte*>(held->data());
  tensor.dtype = dtype;
  tensor.stride = row_major(shape);
  tensor.shape = std::move(shape);
  tensor.owner = held;
  tensor.present = true;
  return tensor;
}

inline StoredTensor f64s(Shape shape, Numbers values) {
  return own(std::move(shape), Dtype::f64, std::move(values));
}
inline StoredTensor f32s(Shape shape, const Numbers& values) {  // rounded to nearest
  std::vector<float> rounded;
  for (const double x : values) rounded.push_back(static_cast<float>(x));
  return own(std::move(shape), Dtype::f32, std::move(rounded));
}
inline StoredTensor bf16s(Shape shape, const Numbers& values) {  // through f32, to nearest even
  std::vector<std::uint16_t> codes;
  for (const double x : values) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    const bool nan = std::isnan(x);
    codes.push_back(
        static_cast<std::uint16_t>(nan ? 0x7fc0u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16));
  }
  return own(std::move(shape), Dtype::bf16, std::move(codes));
}
inline StoredTensor i32s(Shape shape, Integers values) {
  return own(std::move(shape), Dtype::i32, std::move(values));
}
inline StoredTensor bools(Shape shape, Flags values) {
  return own(std::move(shape), Dtype::boolean, std::move(values));
}
// '1' true, '0' false; spaces are for the eye.
inline StoredTensor bools(Shape shape, std::string_view text) {
  Flags values;
  for (const char c : text) {
    if (c == '0' || c == '1') values.push_back(c == '1' ? 1 : 0);
  }
  return bools(std::move(shape), std::move(values));
}
// An array of the working precision; it must outlive the tensor.
template <class T> StoredTensor working(const Array<T>& array) { return view(array, ""); }

inline void put(Tensors& tensors, std::string_view prefix, const std::string& name,
                StoredTensor tensor) {
  tensor.name = std::string(prefix) + name;
  tensors.insert_or_assign(name, std::move(tensor));
}
inline void put_in(Problem& problem, const std::string& name, StoredTensor tensor) {
  put(problem.in, "in.", name, std::move(tensor));
}
inline void put_given(Problem& problem, const std::string& name, StoredTensor tensor) {
  put(problem.given, "given.", name, std::move(tensor));
}
inline void put_cot(Problem& problem, const std::string& name, StoredTensor tensor) {
  put(problem.cot, "cot.", name, std::move(tensor));
}
struct Named {
  std::string name;
  StoredTensor tensor;
};
inline Problem problem(Json options, std::vector<Named> in, std::vector<Named> cot = {}) {
  Problem made;
  made.options = std::move(options);
  made.outputs = {"all"};
  for (Named& each : in) put_in(made, each.name, std::move(each.tensor));
  for (Named& each : cot) put_cot(made, each.name, std::move(each.tensor));
  return made;
}

// f(flat, index) over all elements, row-major.
template <class F> void each_index(const Shape& shape, F f) {
  std::vector<std::int64_t> index(shape.size(), 0);
  const std::int64_t count = count_of(shape);
  for (std::int64_t flat = 0; flat < count; ++flat) {
    f(static_cast<std::size_t>(flat), Index(index));
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}
inline Numbers numbers_of(const StoredTensor& tensor) {
  Numbers values;
  each_index(tensor.shape, [&](std::size_t, Index index) {
    values.push_back(Fetch<double>::element(tensor, index));
  });
  return values;
}
inline Integers integers_of(const StoredTensor& tensor) {
  Integers values;
  each_index(tensor.shape, [&](std::size_t, Index index) {
    values.push_back(static_cast<std::int32_t>(integer_at(tensor, index)));
  });
  return values;
}
inline Flags flags_of(const StoredTensor& tensor) {
  Flags values;
  each_index(tensor.shape, [&](std::size_t, Index index) {
    values.push_back(boolean_at(tensor, index) ? 1 : 0);
  });
  return values;
}
// Entries `list` of one axis, copied, whatever the dtype.
inline StoredTensor take(const StoredTensor& tensor, std::size_t axis,
                         const std::vector<std::int64_t>& list) {
  Shape shape = tensor.shape;
  shape[axis] = static_cast<std::int64_t>(list.size());
  const std::size_t width = size_of(tensor.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count_of(shape)) * width);
  each_index(shape, [&](std::size_t flat, Index index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      offset +=
          (i == axis ? list[static_cast<std::size_t>(index[i])] : index[i]) * tensor.stride[i];
    }
    std::memcpy(&bytes[flat * width], tensor.data + offset * static_cast<std::int64_t>(width),
                width);
  });
  const auto held = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  StoredTensor made = tensor;
  made.data = held->data();
  made.owner = held;
  made.stride = row_major(shape);
  made.shape = std::move(shape);
  return made;
}
inline std::vector<std::int64_t> range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = first; i < last; ++i) list.push_back(i);
  return list;
}

inline const Value& output(const Result& result, std::string_view name) {
  const Value* found = result.find(name);
  if (found == nullptr) throw std::logic_error("no output " + std::string(name));
  return *found;
}
inline const Value& gradient(const Result& result, std::string_view name) {
  const Value* found = result.find(name, true);
  if (found == nullptr) throw std::logic_error("no gradient " + std::string(name));
  return *found;
}

// The first element whose bits differ, in words; empty when there is none.
inline std::string difference(const std::vector<Value>& x, const std::vector<Value>& y) {
  if (x.size() != y.size()) return "another number of values";
  for (std::size_t v = 0; v < x.size(); ++v) {
    if (x[v].name != y[v].name || x[v].shape != y[v].shape)
      return "another name or shape than " + x[v].name;
    const auto at = [&](std::size_t i) {
      return x[v].name + " element " + std::to_string(i) + ": ";
    };
    for (std::size_t i = 0; i < x[v].high.size(); ++i) {
      const double a = x[v].high[i], b = y[v].high[i];
      if (std::bit_cast<std::uint64_t>(a) != std::bit_cast<std::uint64_t>(b) ||
          std::bit_cast<std::uint64_t>(x[v].low[i]) != std::bit_cast<std::uint64_t>(y[v].low[i])) {
        return at(i) + std::to_string(a) + " and " + std::to_string(b);
      }
    }
    for (std::size_t i = 0; i < x[v].integers.size(); ++i) {
      if (x[v].integers[i] != y[v].integers[i]) {
        return at(i) + std::to_string(x[v].integers[i]) + " and " +
               std::to_string(y[v].integers[i]);
      }
    }
    if (x[v].booleans != y[v].booleans) return x[v].name + ": other flags";
  }
  return {};
}
inline std::string difference(const Result& x, const Result& y) {
  const std::string outputs = difference(x.outputs, y.outputs);
  return outputs.empty() ? difference(x.gradients, y.gradients) : outputs;
}

}  // namespace plumbline::support
