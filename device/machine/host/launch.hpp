// device/machine/host/launch.hpp
//
// Starting a kernel on the host. A stream owns the machine, knows every buffer that kernels may
// touch, and keeps the first crime; after one, later launches do nothing.
//
//   Stream stream({.seed = 7, .late = true});
//   stream.input("query", query.data(), query.size());
//   stream.output("scores", scores.data(), scores.size());       // poisoned now
//   launch<Kernel>(stream, {blocks}, args);
//   EXPECT_EQ(stream.finish(), "");  // everything written, nothing wrong
#pragma once
#include "device/machine/host/access.hpp"

namespace plumbline::device::host {

class Stream {
 public:
  explicit Stream(Options options = {});

  template <class T> void input(std::string name, const T* data, std::size_t count) {
    add(std::move(name), Role::input, const_cast<T*>(data), count * sizeof(T), sizeof(T));
  }
  template <class T> void output(std::string name, T* data, std::size_t count) {
    add(std::move(name), Role::output, data, count * sizeof(T), sizeof(T));
  }
  template <class T> void workspace(std::string name, T* data, std::size_t count) {
    add(std::move(name), Role::workspace, data, count * sizeof(T), sizeof(T));
  }
  template <class T> void accumulator(std::string name, T* data, std::size_t count) {
    add(std::move(name), Role::accumulator, data, count * sizeof(T), sizeof(T));
  }

  // The first crime; then nothing else has run. Empty: all is well so far.
  const std::string& error() const { return machine_.crime; }
  bool failed() const { return !machine_.crime.empty(); }
  void fail(const std::string& text) {
    if (!failed()) machine_.crime = text;
  }
  // Also complains about outputs that nobody wrote.
  const std::string& finish();

  const std::vector<Site>& sites() const { return machine_.sites; }
  std::uint64_t switches() const { return machine_.switches; }
  const Options& options() const { return machine_.options; }
  Machine& machine() { return machine_; }

 private:
  void add(std::string name, Role role, void* data, std::size_t bytes, std::size_t element);

  Machine machine_;
};

template <class Kernel> void launch(Stream& stream, Grid grid, const typename Kernel::Args& args) {
  static_assert(Kernel::threads % 32 == 0 && Kernel::threads <= 1024, "whole warps, at most 32");
  static_assert(sizeof(typename Kernel::Plan) <= 227 * 1024, "a block has at most 227 KiB");
  if (stream.failed() || grid.x * grid.y * grid.z == 0) return;
  if (grid.x > 0x7FFFFFFF || grid.y > 65535 || grid.z > 65535)
    return stream.fail("a grid has at most 2^31 - 1 x 65535 x 65535 blocks");
  const typename Kernel::Args copy = args;
  stream.machine().launch(Kernel::threads, grid, sizeof(typename Kernel::Plan), [&](void* shared) {
    Kernel::run(copy, *static_cast<typename Kernel::Plan*>(shared));
  });
}

}  // namespace plumbline::device::host
