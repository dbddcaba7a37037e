// device/topk/launch.hpp
//
// The k best visible keys of every row, deterministic: larger score first, of equal scores the lower
// index, NaN after −inf, −0 equal to 0. indices [rows, k] best first, then −1; flags [rows, keys] 1
// or 0, under `threshold` for every key whose score is at least the k-th.
#pragma once
#include <cstddef>

#include "device/plain.hpp"

namespace plumbline::device {

struct TopK {
  Type type = Type::f32;  // of scores
  std::int64_t rows = 0, keys = 0, k = 0;
  bool threshold = false;
  const void* scores = nullptr;            // rows keys
  const unsigned char* visible = nullptr;  // rows keys, 1 or 0; null: all
  std::int32_t* indices = nullptr;         // rows k
  std::int32_t* selected = nullptr;        // rows keys
  void* workspace = nullptr;
};
std::size_t topk_workspace(const TopK& args);  // bytes

PLUMBLINE_LAUNCHER(topk, TopK)

}  // namespace plumbline::device
