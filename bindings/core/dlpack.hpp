// bindings/core/dlpack.hpp
//
// DLPack's tensor, https://dmlc.github.io/dlpack: the layout is its ABI and has not changed since 0.2; codes are those
// of 1.1.
#pragma once
#include <cstdint>

#include "bindings/core/call.hpp"

namespace plumbline::bindings::dlpack {

struct Device {
  std::int32_t type, id;
};
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t rank;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};

// Error for one that plumbline does not read; `where` is how it names the tensor.
Dtype dtype_of(DataType type, const std::string& where);
DataType type_of(Dtype dtype);
// Error where the CPU cannot read it.
void check_device(Device device, const std::string& where);

}  // namespace plumbline::bindings::dlpack
