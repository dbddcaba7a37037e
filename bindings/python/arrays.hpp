// bindings/python/arrays.hpp: arrays of Python and tensors of ours, without a copy in either direction.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/core/call.hpp"

namespace plumbline::bindings {

namespace nb = nanobind;

// Lists of (full name, array, dtype or None): anything with __dlpack__ or a buffer. The dtype stands for codes that the
// array holds as plain integers of their width, such as bf16 in a numpy array of uint16.
class BorrowedTensors {
 public:
  explicit BorrowedTensors(nb::list named);
  std::vector<StoredTensor> tensors;

 private:
  std::vector<nb::ndarray<nb::ro>> held_;
};

// (high, low, bound, bound2, gauge, digits) of real numbers, an array of any other; what there is not is None.
nb::tuple tuple_of(Value& value);
// (name, dtype, array); the array holds codes where numpy has no such dtype.
nb::list list_of(const std::vector<StoredTensor>& tensors);

}  // namespace plumbline::bindings
