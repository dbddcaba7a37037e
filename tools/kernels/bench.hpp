// tools/kernels/bench.hpp
//
// Where a kernel runs once: tensors of a problem copied into buffers that the machine knows,
// results and workspaces poisoned, launches, and what came of it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/machine/host/launch.hpp"
#include "device/plain.hpp"
#include "reference/tensor/stored_tensor.hpp"

namespace plumbline {

class Bench {
 public:
  explicit Bench(device::host::Options options) : stream_(std::move(options)) {}

  // A dense copy of a tensor; null where it is absent.
  const void* input(const StoredTensor& tensor);
  // Numbers that the launch needs beside tensors: positions, cosines, who sees whom.
  template <class T> const T* table(const std::string& name, const std::vector<T>& values) {
    T* const to = room<T>(values.size());
    std::copy(values.begin(), values.end(), to);
    stream_.input(name, static_cast<const T*>(to), values.size());
    return to;
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

  // Runs a launcher of either side.
  template <class Arguments>
  void start(void (*on_host)(device::host::Stream&, const Arguments&), const Arguments& arguments) {
    on_host(stream_, arguments);
  }
  // "" or what went wrong: a refusal, a crime, an output that nobody wrote.
  const std::string& finish() { return stream_.finish(); }
  const std::vector<StoredTensor>& results() const { return results_; }
  device::host::Stream& stream() { return stream_; }

 private:
  // Never empty, so that an empty tensor is not an absent one; aligned for wide accesses.
  template <class T> T* room(std::size_t count) {
    buffers_.push_back(std::make_shared<std::vector<Chunk>>(count * sizeof(T) / sizeof(Chunk) + 1));
    return reinterpret_cast<T*>(buffers_.back()->data());
  }
  StoredTensor& add_result(const std::string& name, const Shape& shape, Dtype dtype,
                           const void* data);

  struct alignas(64) Chunk {
    char bytes[64];
  };
  std::vector<std::shared_ptr<std::vector<Chunk>>> buffers_;
  std::vector<StoredTensor> results_;
  device::host::Stream stream_;
};

}  // namespace plumbline
