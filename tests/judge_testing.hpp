// tests/judge_testing.hpp: values, bounds and tensors of a kernel, made by hand.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "verdict/contract.hpp"
#include "verdict/judge.hpp"

namespace plumbline {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline const double nan = std::nan("");

template <class U>
StoredTensor tensor_of(const Shape& shape, Dtype dtype, const std::vector<U>& values) {
  StoredTensor tensor;
  const auto owner = std::make_shared<std::vector<U>>(values);
  tensor.name = "out.y";
  tensor.data = reinterpret_cast<const std::byte*>(owner->data());
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.stride = row_major(shape);
  tensor.owner = owner;
  tensor.present = true;
  return tensor;
}
inline StoredTensor doubles(const Shape& shape, const std::vector<double>& values) {
  return tensor_of(shape, Dtype::f64, values);
}
inline StoredTensor floats(const Shape& shape, const std::vector<float>& values) {
  return tensor_of(shape, Dtype::f32, values);
}

inline Value value_of(const Shape& shape, const std::vector<double>& high, double bound = 0,
                      double bound2 = 0, double gauge = 1e3) {
  Value value;
  value.name = "y";
  value.shape = shape;
  value.high = high;
  value.low.assign(high.size(), 0);
  value.bound.assign(high.size(), bound);
  value.bound2.assign(high.size(), bound2);
  value.gauge.assign(high.size(), gauge);
  return value;
}

// Storing costs next to nothing under f64, so that bounds are what they say.
inline const KernelContract& f64() { return contract_named("ieee_f64"); }
inline const KernelContract& f32() { return contract_named("ieee_f32"); }

}  // namespace plumbline
