// Tensors and cases as they go in and out.
#include <limits>

#include "bindings/core/call.hpp"
#include "fixtures/c_order.hpp"
#include "fixtures/generate.hpp"
#include "fixtures/safetensors.hpp"
#include "fixtures/strict_json.hpp"
#include "reference/error.hpp"
#include "verdict/contract.hpp"

namespace plumbline::bindings {

StoredTensor tensor_at(std::string name, const void* data, Dtype dtype, Shape shape,
                       const Shape* stride) {
  for (const std::int64_t size : shape) {
    if (size < 0) throw Error(name, "shape " + to_string(shape), "sizes >= 0");
  }
  const std::int64_t count = count_of(shape);
  if (count > std::numeric_limits<std::int64_t>::max() / 8)
    throw Error(name, "shape " + to_string(shape), "a size that fits in memory");
  if (count > 0 && data == nullptr) throw Error(name, "no data", "an address");
  StoredTensor tensor;
  tensor.name = std::move(name);
  tensor.data = static_cast<const std::byte*>(data);
  tensor.dtype = dtype;
  tensor.stride = stride != nullptr ? *stride : row_major(shape);
  // Strides of axes of one element, and of empty tensors, are anything: nobody steps along them.
  const Shape order = row_major(shape);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1 || count == 0) tensor.stride[axis] = order[axis];
  }
  tensor.shape = std::move(shape);
  tensor.present = true;
  return tensor;
}

OpenCase load(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  OpenCase a_case;
  for (const FileTensor& tensor : file.tensors()) a_case.tensors.push_back(file.stored(tensor));
  a_case.metadata = file.metadata();
  return a_case;
}

OpenCase generate(std::string_view request, int threads) {
  const GeneratedCase made = plumbline::generate(
      generate_request(parse_json(request, "generate"), "generate"), threads, contract_in);
  OpenCase a_case;
  for (const GeneratedTensor& tensor : made.tensors) a_case.tensors.push_back(stored(tensor));
  a_case.metadata = made.metadata;
  return a_case;
}

void save(const std::string& path, const OpenCase& a_case) {
  std::vector<StoredTensor> ordered;  // keeps copies alive
  std::vector<TensorBytes> tensors;
  for (const StoredTensor& tensor : a_case.tensors) {
    ordered.push_back(in_c_order(tensor));
    const auto bytes = static_cast<std::size_t>(count_of(tensor.shape)) * size_of(tensor.dtype);
    tensors.push_back(
        {tensor.name, tensor.dtype, tensor.shape, std::span(ordered.back().data, bytes)});
  }
  write_safetensors(path, std::move(tensors), a_case.metadata);
}

}  // namespace plumbline::bindings
