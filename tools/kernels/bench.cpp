#include "tools/kernels/bench.hpp"

#include <algorithm>
#include <cstring>

#include "reference/error.hpp"

namespace plumbline {
namespace {

std::size_t elements(const Shape& shape) { return static_cast<std::size_t>(count_of(shape)); }

// The elements of a strided tensor in C order.
void copy_dense(const StoredTensor& tensor, char* to) {
  const auto width = static_cast<std::int64_t>(size_of(tensor.dtype));
  Shape index(tensor.shape.size(), 0);
  for (std::int64_t i = 0, count = count_of(tensor.shape); i < count; ++i, to += width) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * tensor.stride[axis];
    std::memcpy(to, tensor.data + at * width, static_cast<std::size_t>(width));
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < tensor.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace

const void* Bench::input(const StoredTensor& tensor) {
  if (!tensor.given()) return nullptr;
  const std::size_t count = elements(tensor.shape), width = size_of(tensor.dtype);
  char* const to = room<char>(count * width);
  copy_dense(tensor, to);
  switch (width) {
    case 1: stream_.input(tensor.name, to, count); break;
    case 2: stream_.input(tensor.name, reinterpret_cast<std::uint16_t*>(to), count); break;
    case 4: stream_.input(tensor.name, reinterpret_cast<std::uint32_t*>(to), count); break;
    default: throw Error(tensor.name, std::string(name_of(tensor.dtype)), "a dtype of kernels");
  }
  return to;
}

StoredTensor& Bench::add_result(const std::string& name, const Shape& shape, Dtype dtype,
                                const void* data) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.data = static_cast<const std::byte*>(data);
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.stride = row_major(shape);
  tensor.owner = buffers_.back();
  tensor.present = true;
  results_.push_back(std::move(tensor));
  return results_.back();
}

void* Bench::result(const std::string& name, const Shape& shape, Dtype dtype) {
  const std::size_t count = elements(shape);
  void* const data = room<char>(count * size_of(dtype));
  if (size_of(dtype) == 4)
    stream_.output(name, static_cast<float*>(data), count);
  else
    stream_.output(name, static_cast<std::uint16_t*>(data), count * size_of(dtype) / 2);
  add_result(name, shape, dtype, data);
  return data;
}

void Bench::known(const std::string& name, const Shape& shape,
                  const std::vector<std::uint8_t>& flags) {
  char* const data = room<char>(flags.size());
  std::copy(flags.begin(), flags.end(), data);
  add_result(name, shape, Dtype::boolean, data);
}

float* Bench::accumulator(const std::string& name, const Shape& shape) {
  float* const data = room<float>(elements(shape));
  std::memset(data, 0, elements(shape) * sizeof(float));
  stream_.accumulator(name, data, elements(shape));
  add_result(name, shape, Dtype::f32, data);
  return data;
}

void* Bench::workspace(const std::string& name, std::size_t bytes) {
  const std::size_t words = (bytes + 3) / 4;
  float* const data = room<float>(words);
  stream_.workspace(name, data, words);
  return data;
}

}  // namespace plumbline
