#include "tools/kernels/bench.hpp"

#include <cstring>

#include "fixtures/c_order.hpp"
#include "reference/error.hpp"

namespace plumbline {
namespace {

std::size_t elements(const Shape& shape) { return static_cast<std::size_t>(count_of(shape)); }

}  // namespace

Bench::Bench(const KernelMachine& machine) : gpu_(machine.gpu), stream_(machine.options) {
  if (gpu_ && !has_gpu())
    throw Error("--device gpu", "no GPU, or a program built without nvcc", "a GPU");
#if PLUMBLINE_GPU
  if (gpu_) gpu_stream_ = device::gpu::new_stream();
#endif
}

Bench::Buffer& Bench::room(std::size_t bytes) {
  buffers_.push_back(std::make_shared<Buffer>());
  Buffer& buffer = *buffers_.back();
  buffer.chunks.resize(bytes / sizeof(Chunk) + 1);
  buffer.bytes = bytes;
  return buffer;
}

void* Bench::shown(Buffer& buffer) {
#if PLUMBLINE_GPU
  if (gpu_) {
    buffer.on_gpu.reset(device::gpu::allocate(buffer.bytes), device::gpu::release);
    device::gpu::upload(buffer.on_gpu.get(), buffer.data(), buffer.bytes);
    return buffer.on_gpu.get();
  }
#endif
  return buffer.data();
}

const void* Bench::input(const StoredTensor& tensor) {
  if (!tensor.given()) return nullptr;
  const std::size_t count = elements(tensor.shape), width = size_of(tensor.dtype);
  Buffer& buffer = room(count * width);
  char* const to = static_cast<char*>(buffer.data());
  if (count > 0) std::memcpy(to, in_c_order(tensor).data, count * width);
  switch (width) {
    case 1: stream_.input(tensor.name, to, count); break;
    case 2: stream_.input(tensor.name, reinterpret_cast<std::uint16_t*>(to), count); break;
    case 4: stream_.input(tensor.name, reinterpret_cast<std::uint32_t*>(to), count); break;
    default: throw Error(tensor.name, std::string(name_of(tensor.dtype)), "a dtype of kernels");
  }
  return shown(buffer);
}

StoredTensor& Bench::add_result(const std::string& name, const Shape& shape, Dtype dtype) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.data = static_cast<const std::byte*>(buffers_.back()->data());
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
  Buffer& buffer = room(count * size_of(dtype));
  buffer.comes_back = true;
  if (size_of(dtype) == 4)  // both poison it
    stream_.output(name, static_cast<float*>(buffer.data()), count);
  else
    stream_.output(name, static_cast<std::uint16_t*>(buffer.data()), count * size_of(dtype) / 2);
  add_result(name, shape, dtype);
  return shown(buffer);
}

void Bench::known(const std::string& name, const Shape& shape,
                  const std::vector<std::uint8_t>& flags) {
  std::copy(flags.begin(), flags.end(), static_cast<std::uint8_t*>(room(flags.size()).data()));
  add_result(name, shape, Dtype::boolean);
}

float* Bench::accumulator(const std::string& name, const Shape& shape) {
  Buffer& buffer = room(elements(shape) * sizeof(float));
  buffer.comes_back = true;
  std::memset(buffer.data(), 0, buffer.bytes);
  stream_.accumulator(name, static_cast<float*>(buffer.data()), elements(shape));
  add_result(name, shape, Dtype::f32);
  return static_cast<float*>(shown(buffer));
}

void* Bench::workspace(const std::string& name, std::size_t bytes) {
  const std::size_t words = (bytes + 3) / 4;
  Buffer& buffer = room(words * 4);
  stream_.workspace(name, static_cast<float*>(buffer.data()), words);
  return shown(buffer);
}

std::string Bench::finish() {
#if PLUMBLINE_GPU
  if (gpu_) {
    const std::string wrong = device::gpu::finish(*gpu_stream_);
    if (!wrong.empty()) return wrong;
    for (const auto& buffer : buffers_) {
      if (buffer->comes_back)
        device::gpu::download(buffer->data(), buffer->on_gpu.get(), buffer->bytes);
    }
    return "";
  }
#endif
  return stream_.finish();
}

#if PLUMBLINE_GPU
bool has_gpu() { return device::gpu::count() > 0; }
std::string gpu_name() { return device::gpu::name(); }
#else
bool has_gpu() { return false; }
std::string gpu_name() { return ""; }
#endif

}  // namespace plumbline
