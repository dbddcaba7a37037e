// device/plain.hpp: what launchers of both sides of the machine take. Numbers and pointers only, so
// that code which knows neither side can fill it in.
#pragma once
#include <cstdint>

namespace plumbline::device {

enum class Type { bf16, f32 };  // of the tensors of a launch

namespace host {
class Stream;  // device/machine/host/launch.hpp
}
namespace gpu {
class Stream;  // device/machine/gpu/launch.hpp
}

// A launcher is one text for both sides: validation, then launches. What is wrong goes to the
// stream, whose first error stays and stops later launches.
#define PLUMBLINE_LAUNCHER(NAME, ARGUMENTS)         \
  namespace host {                                  \
  void NAME(Stream& stream, const ARGUMENTS& args); \
  }                                                 \
  namespace gpu {                                   \
  void NAME(Stream& stream, const ARGUMENTS& args); \
  }

}  // namespace plumbline::device
