// device/gpu/memory.hpp: the little of a GPU that callers of launchers need, without CUDA's headers.
// What fails throws std::runtime_error with the driver's words.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "device/plain.hpp"

namespace plumbline::device::gpu {

int count();         // GPUs that answer; 0 without a driver
std::string name();  // of the first

void* allocate(std::size_t bytes);  // at least 1, 256-byte aligned
void release(void* on_gpu) noexcept;
void upload(void* on_gpu, const void* from, std::size_t bytes);
void download(void* to, const void* on_gpu, std::size_t bytes);

struct EndStream {
  void operator()(Stream* stream) const noexcept;
};
using StreamPointer = std::unique_ptr<Stream, EndStream>;
StreamPointer new_stream();
std::string finish(Stream& stream);  // waits; "" or the first error

}  // namespace plumbline::device::gpu
