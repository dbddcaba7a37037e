// verdict/elements.hpp
//
// Elements of tensors as they lie in a file (C order, any alignment), by their position. Every real dtype is exact in
// double, and a remainder rides along as a second double.
#pragma once
#include <cstdint>

#include "reference/tensor/stored_tensor.hpp"

namespace plumbline {

struct Pair {  // high + low
  double high = 0, low = 0;
};

double real_element(const StoredTensor& tensor, std::int64_t position);
Pair pair_element(const StoredTensor& tensor,
                  std::int64_t position);  // with tensor.low, if it has one
std::int64_t integer_element(const StoredTensor& tensor,
                             std::int64_t position);  // I64, I32, U8, BOOL

// |a − b|, good to 2^−100 of the larger one: the low parts enter before anything is rounded away.
long double difference(Pair a, Pair b);

// Distance from one number of `dtype` to the next, at magnitude |x|: 2^(exponent − fraction bits), with the exponent
// held between those of the dtype's smallest and largest normal numbers.
long double ulp_at(Dtype dtype, double x);

Shape index_of(const Shape& shape, std::int64_t position);

}  // namespace plumbline
