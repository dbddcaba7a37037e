#include "bindings/core/dlpack.hpp"

#include "reference/error.hpp"

namespace plumbline::bindings::dlpack {
namespace {

struct Row {
  Dtype dtype;
  std::uint8_t code, bits;
};
constexpr Row rows[] = {
    {Dtype::f64, 2, 64},     {Dtype::f32, 2, 32}, {Dtype::f16, 2, 16}, {Dtype::bf16, 4, 16},
    {Dtype::i64, 0, 64},     {Dtype::i32, 0, 32}, {Dtype::u8, 1, 8},   {Dtype::boolean, 6, 8},
    {Dtype::f8_e4m3, 10, 8},  // e4m3fn: no infinities
    {Dtype::f8_e5m2, 12, 8},
};

std::string text_of(DataType type) {
  constexpr const char* names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const std::string name = type.code < std::size(names) ? std::string(names[type.code])
                                                        : "code " + std::to_string(type.code) + " ";
  return name + std::to_string(type.bits) +
         (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

}  // namespace

Dtype dtype_of(DataType type, const std::string& where) {
  for (const Row& row : rows) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  std::string list;
  for (const Row& row : rows) list += (list.empty() ? "" : ", ") + std::string(name_of(row.dtype));
  throw Error(where, "dtype " + text_of(type), "one of " + list);
}

DataType type_of(Dtype dtype) {
  for (const Row& row : rows) {
    if (row.dtype == dtype) return {row.code, row.bits, 1};
  }
  throw Error("dtype", std::string(name_of(dtype)), "one of files");
}

void check_device(Device device, const std::string& where) {
  constexpr std::int32_t readable[] = {1, 3, 11, 13};  // CPU; pinned of CUDA, of ROCm; managed
  for (const std::int32_t type : readable) {
    if (device.type == type) return;
  }
  throw Error(where, "memory of device type " + std::to_string(device.type),
              "memory that the CPU reads: copy it to the host first");
}

}  // namespace plumbline::bindings::dlpack
