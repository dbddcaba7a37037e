#include "device/gpu/memory.hpp"

#include <stdexcept>

#include "device/machine/machine.hpp"

namespace plumbline::device::gpu {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

}  // namespace

int count() {
  int found = 0;
  return cudaGetDeviceCount(&found) == cudaSuccess ? found : 0;
}
std::string name() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}

void* allocate(std::size_t bytes) {
  void* on_gpu = nullptr;
  check(cudaMalloc(&on_gpu, bytes > 0 ? bytes : 1));
  return on_gpu;
}
void release(void* on_gpu) noexcept { cudaFree(on_gpu); }
void upload(void* on_gpu, const void* from, std::size_t bytes) {
  check(cudaMemcpy(on_gpu, from, bytes, cudaMemcpyHostToDevice));
}
void download(void* to, const void* on_gpu, std::size_t bytes) {
  check(cudaMemcpy(to, on_gpu, bytes, cudaMemcpyDeviceToHost));
}

void EndStream::operator()(Stream* stream) const noexcept { delete stream; }
StreamPointer new_stream() { return StreamPointer(new Stream); }
std::string finish(Stream& stream) {
  stream.check(cudaDeviceSynchronize());
  return stream.error();
}

}  // namespace plumbline::device::gpu
