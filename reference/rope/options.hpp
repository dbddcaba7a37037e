// reference/rope/options.hpp
//
// How channels are rotated by position, as every operation with a rotary embedding takes it (option
// "rope"). docs/ops/rope.md explains each field. Operations with other defaults for placement and
// pairing set them in the initialiser of their own options.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace plumbline {

enum class Placement { trailing, leading };
enum class Pairing { interleaved, half };
enum class RopeOutput { same, half };

inline std::span<const std::string_view> names_of(Placement) {
  static constexpr std::string_view names[] = {"trailing", "leading"};
  return names;
}
inline std::span<const std::string_view> names_of(Pairing) {
  static constexpr std::string_view names[] = {"interleaved", "half"};
  return names;
}
inline std::span<const std::string_view> names_of(RopeOutput) {
  static constexpr std::string_view names[] = {"same", "half"};
  return names;
}

struct Yarn {
  std::optional<double> factor;
  std::optional<std::int64_t> original_max_position;
  std::optional<double> beta_fast, beta_slow;
  bool truncate = true;

  template <class Visitor> void fields(Visitor& v) {
    v("factor", factor, "context is longer than in training by this factor; > 0; required");
    v("original_max_position", original_max_position,
      "context length of the training; > 0; required");
    v("beta_fast", beta_fast,
      "pairs that turn more often than this over that length keep their frequency; required");
    v("beta_slow", beta_slow,
      "pairs that turn less often than this are slowed by the whole factor; required");
    v("truncate", truncate,
      "the ends of the ramp between them are rounded outwards to whole pairs");
  }
  bool operator==(const Yarn&) const = default;
};

struct RopeOptions {
  std::optional<double> theta;
  std::optional<std::int64_t> dim;
  Placement placement = Placement::trailing;
  Pairing pairing = Pairing::interleaved;
  RopeOutput output = RopeOutput::same;
  bool inverse = false;
  double attention_factor = 1;
  std::optional<Yarn> yarn;

  template <class Visitor> void fields(Visitor& v) {
    v("theta", theta, "base: pair i turns by position * theta^(-2i/dim); > 0; required");
    v("dim", dim, "channels that are rotated; even, at most the width; required");
    v("placement", placement, "the last dim channels, or the first");
    v("pairing", pairing, "pair i is channels (2i, 2i+1), or (i, i + dim/2)");
    v("output", output,
      "half: results of interleaved pairs as all first parts, then all second parts");
    v("inverse", inverse, "rotate back; output is then the layout of the input");
    v("attention_factor", attention_factor, "factor of the rotated channels, of the inverse too");
    v("yarn", yarn, "frequencies changed for a longer context");
  }
  bool operator==(const RopeOptions&) const = default;
};

}  // namespace plumbline
