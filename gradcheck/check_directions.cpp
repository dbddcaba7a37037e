// gradcheck/check_directions.cpp
//
// Inputs with too many coordinates to displace one by one: all of them at once, along random directions. A wrong
// element shows in every direction, since no weight is smaller than 1/2; halving the coordinates then finds it.
#include <algorithm>

#include "gradcheck/check_input.hpp"
#include "reference/error.hpp"

namespace plumbline::differences {
namespace {

// splitmix64 of a counter: the same directions everywhere, whatever the order they are asked for.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// ±(2^31 + 31 random bits)/2^32: exact in double, magnitudes in [1/2, 1).
double weight_of(std::uint64_t seed, std::uint64_t direction, std::uint64_t at) {
  const std::uint64_t bits = mixed(mixed(mixed(seed) ^ direction) ^ at);
  const double size = static_cast<double>((std::uint64_t{1} << 31) | (bits >> 33));
  return ((bits & 1) != 0 ? -size : size) / static_cast<double>(std::uint64_t{1} << 32);
}

}  // namespace

mp100 InputCheck::product(std::span<const Displaced> direction) const {
  mp100 total(0);
  for (const Displaced& each : direction) total += right_[each.at] * each.weight;
  return total;
}

void InputCheck::check_directions() {
  report_.directions = std::max<std::int64_t>(settings_.directions, 1);
  std::vector<std::vector<Displaced>> directions(static_cast<std::size_t>(report_.directions));
  for (std::size_t d = 0; d < directions.size(); ++d) {
    for (const std::size_t at : finite_) directions[d].push_back({at, weight_of(settings_.seed, d, at)});
  }
  const std::vector<Slope> found = slopes(directions, surrogate_);
  bool covered = true;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const auto direction = static_cast<std::int64_t>(d);
    note_kinks(found[d], {}, direction);
    covered = check_direction(directions[d], found[d], direction) && covered;
  }
  // Elements found wrong have been counted already.
  const std::int64_t named_wrong = report_.wrong_elements;
  if (covered) report_.checked += static_cast<std::int64_t>(finite_.size()) - named_wrong;
  measure_distance(directions);
}
