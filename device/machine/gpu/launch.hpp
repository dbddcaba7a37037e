// device/machine/gpu/launch.hpp: starting a kernel, and tensor maps. Ordinary host code.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "device/machine/gpu/operations.hpp"

namespace plumbline::device::gpu {

// Where launches go. The first error stays; later launches do nothing.
class Stream {
 public:
  explicit Stream(cudaStream_t handle = nullptr) : handle_(handle) {}
  cudaStream_t handle() const { return handle_; }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  void fail(const std::string& text) {
    if (error_.empty()) error_ = text;
  }
  bool check(cudaError_t status) {
    if (status != cudaSuccess) fail(cudaGetErrorString(status));
    return status == cudaSuccess;
  }

 private:
  cudaStream_t handle_;
  std::string error_;
};

template <class Kernel> consteval int residency_of() {
  if constexpr (requires { Kernel::residency; }) return Kernel::residency;
  return 1;
}

template <class Kernel> __global__ void __launch_bounds__(Kernel::threads, residency_of<Kernel>())
    entry(const __grid_constant__ typename Kernel::Args args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Kernel::run(args, *reinterpret_cast<typename Kernel::Plan*>(shared));
}

template <class Kernel> void launch(Stream& stream, Grid grid, const typename Kernel::Args& args) {
  static_assert(Kernel::threads % 32 == 0 && Kernel::threads <= 1024, "whole warps, at most 32");
  static_assert(sizeof(typename Kernel::Args) <= 4096, "arguments travel in 4 KiB");
  static_assert(sizeof(typename Kernel::Plan) <= 227 * 1024, "a block has at most 227 KiB");
  if (stream.failed() || grid.x * grid.y * grid.z == 0) return;
  if (grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535)
    return stream.fail("a grid has at most 2^31 - 1 x 65535 x 65535 blocks");
  constexpr int bytes = static_cast<int>(sizeof(typename Kernel::Plan));
  if (!stream.check(
          cudaFuncSetAttribute(entry<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)))
    return;
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                    static_cast<unsigned>(grid.z));
  entry<Kernel><<<blocks, Kernel::threads, bytes, stream.handle()>>>(args);
  stream.check(cudaGetLastError());
}

#if PLUMBLINE_SM90
// The map of a matrix for tiles of type Tile<T, R, C, Swizzle128>; outside the matrix lie zeros.
template <int R, class T> TensorMap tensor_map(const View<T, 2>& matrix) {
  static_assert(sizeof(T) == 2, "panels have 64 columns of two bytes");
  static_assert(R <= 256, "a box has at most 256 rows");
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                       &result) != cudaSuccess ||
      !found)
    throw std::runtime_error("this driver has no cuTensorMapEncodeTiled");
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  const cuuint64_t size[] = {static_cast<cuuint64_t>(matrix.extent(1)),
                             static_cast<cuuint64_t>(matrix.extent(0))};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(matrix.stride(0)) * 2};
  const cuuint32_t box[] = {64, R}, step[] = {1, 1};
  TensorMap map;
  if (encode(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
             const_cast<void*>(static_cast<const void*>(matrix.data())), size, stride, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses this matrix");
  return map;
}
#endif

}  // namespace plumbline::device::gpu
