// device/rope/launch.hpp
//
// Rotary embedding of x [tokens, heads, width], every head of a token by the token's row of the
// table, and its transpose. y is stored in `type`, dx in f32.
#pragma once
#include "device/pieces/rotation.hpp"
#include "device/plain.hpp"

namespace plumbline::device {

struct Rope {
  Type type = Type::bf16;  // of x, y, dy
  std::int64_t tokens = 0, heads = 0, width = 0;
  Rotary rotary;
  const void* x = nullptr;  // tokens heads width
  void* y = nullptr;
};
struct RopeBackward {
  Rope of;  // its x and y are not used: the map is linear
  const void* dy = nullptr;
  float* dx = nullptr;
};

PLUMBLINE_LAUNCHER(rope, Rope)
PLUMBLINE_LAUNCHER(rope_backward, RopeBackward)

}  // namespace plumbline::device
