// tools/kernels/bench.hpp
//
// Where a kernel runs once: tensors of a problem copied into buffers of a machine, results and
// workspaces poisoned, launches, and what came of it. The machine is the host's, which knows every
// buffer and checks every access, or a GPU.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/machine/host/launch.hpp"
#include "device/plain.hpp"
#if PLUMBLINE_GPU
#include "device/gpu/memory.hpp"
#endif
#include "reference/tensor/stored_tensor.hpp"

// A launcher on both sides, for Bench::start; in a build without nvcc there is one.
#if PLUMBLINE_GPU
#define PLUMBLINE_SIDES(NAME) device::host::NAME, device::gpu::NAME
#else
#define PLUMBLINE_SIDES(NAME) device::host::NAME, nullptr
#endif

namespace plumbline {

struct KernelMachine {
  KernelMachine(device::host::Options o = {}) : options(std::move(o)) {}
  device::host::Options options;
  bool gpu = false;  // the first GPU instead of the host's machine
};

class Bench {
 public:
  explicit Bench(const KernelMachine& machine);

  // A dense copy of a tensor; null where it is absent.
  const void* input(const StoredTensor& tensor);
  // Numbers that the launch needs beside tensors: positions, cosines, who sees whom.
  template <class T> const T* table(const std::string& name, const std::vector<T>& values) {
    Buffer& buffer = room(values.size() * sizeof(T));
    std::copy(values.begin(), values.end(), static_cast<T*>(buffer.data()));
    stream_.input(name, static_cast<const T*>(buffer.data()), values.size());
    return static_cast<const T*>(shown(buffer));
  }
  // A result by its full name, "out.y" or "grad.x"; everything of it must be written.
  void* result(const std::string& name, const Shape& shape, Dtype dtype);
  float* gradient(const std::string& name, const Shape& shape) {
    return static_cast<float*>(result("grad." + name, shape, Dtype::f32));
  }
  // Flags that the host knows without a kernel.
  void known(const std::string& name, const Shape& shape, const std::vector<std::uint8_t>& flags);
  // A result that starts from zero and that atomics add to.
  float* accumulator(const std::string& name, const Shape& shape);
  // Scratch between launches, `bytes` as the launcher asks for; it may stay unwritten.
  void* workspace(const std::string& name, std::size_t bytes);

  // Runs a launcher: bench.start(PLUMBLINE_SIDES(linear), arguments).
  template <class Arguments> void start(void (*on_host)(device::host::Stream&, const Arguments&),
                                        void (*on_gpu)(device::gpu::Stream&, const Arguments&),
                                        const Arguments& arguments) {
    gpu_ ? on_gpu(*gpu_stream_, arguments) : on_host(stream_, arguments);
  }
  template <class Arguments> void start(void (*on_host)(device::host::Stream&, const Arguments&),
                                        std::nullptr_t, const Arguments& arguments) {
    on_host(stream_, arguments);
  }
  // "" or what went wrong: a refusal, a crime, an output that nobody wrote.
  std::string finish();
  const std::vector<StoredTensor>& results() const { return results_; }
  device::host::Stream& stream() { return stream_; }

 private:
  struct alignas(64) Chunk {  // aligned for wide accesses
    char bytes[64];
  };
  struct Buffer {
    std::vector<Chunk> chunks;  // never none, so that an empty tensor is not an absent one
    std::size_t bytes = 0;
    std::shared_ptr<void> on_gpu;
    bool comes_back = false;
    void* data() { return chunks.data(); }
  };
  Buffer& room(std::size_t bytes);
  void* shown(Buffer& buffer);  // where kernels see it: on the GPU, its bytes are there then
  StoredTensor& add_result(const std::string& name, const Shape& shape, Dtype dtype);

  bool gpu_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<StoredTensor> results_;
  device::host::Stream stream_;
  std::shared_ptr<device::gpu::Stream> gpu_stream_;
};

bool has_gpu();  // and the program was built for one
std::string gpu_name();

}  // namespace plumbline
