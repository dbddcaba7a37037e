// gradcheck/check_directions.cpp
//
// Inputs with too many coordinates to displace one by one: all of them at once, along random
// directions. A wrong element shows in every direction, since no weight is smaller than 1/2;
// halving the coordinates then finds it.
#include <algorithm>

#include "gradcheck/check_input.hpp"

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

// The half that holds more of the excess, again and again. Slopes along one direction add up, so
// one of the two halves is enough to look at. False: the element in the end is right.
bool InputCheck::find_wrong_element(std::span<const Displaced> direction, mp100 excess) {
  while (direction.size() > 1) {
    const std::span<const Displaced> half = direction.first(direction.size() / 2);
    const mp100 inside = product(half) - function().slope(half, report_.step).value;
    const mp100 outside = excess - inside;
    const bool in_half = magnitude(inside) >= magnitude(outside);
    direction = in_half ? half : direction.subspan(half.size());
    excess = in_half ? inside : outside;
  }
  const Displaced alone[] = {{direction.front().at, 1}};
  return !judge_element(alone[0].at, function().slope(alone, report_.step));
}

// False: it says nothing, the differences have no value.
bool InputCheck::check_direction(std::span<const Displaced> direction, const Slope& slope,
                                 std::int64_t number) {
  const mp100 along = product(direction);
  Judgement judged = judge_along(along, slope, direction);
  if (judged.verdict == Verdict::unchecked) return false;
  if (judged.verdict == Verdict::agrees)
    note_worst({{}, decimal(along), decimal(judged.slope), judged.digits, {}});
  if (judged.verdict == Verdict::at_resolution)
    report_.at_resolution = static_cast<std::int64_t>(finite_.size());
  while (judged.verdict == Verdict::wrong && report_.wrong.size() < settings_.named) {
    if (!find_wrong_element(direction, product(direction) - judged.slope)) {
      report_.failure =
          "disagrees along direction " + std::to_string(number) + ", but no element does";
      break;
    }
    judged = judge_along(product(direction), slope, direction);
  }
  return true;
}

void InputCheck::check_directions() {
  // NaN would spoil every product it enters: such elements first, each on its own, until enough are
  // wrong.
  for (const std::size_t at : finite_) {
    if (is_finite(gradient_[at])) continue;
    if (report_.wrong.size() >= settings_.named) break;
    const Displaced alone[] = {{at, 1}};
    judge_element(at, function().slope(alone, report_.step));
  }
  report_.directions = std::max<std::int64_t>(settings_.directions, 1);
  std::vector<std::vector<Displaced>> directions(static_cast<std::size_t>(report_.directions));
  for (std::size_t d = 0; d < directions.size(); ++d) {
    for (const std::size_t at : finite_) {
      if (is_finite(right_[at])) directions[d].push_back({at, weight_of(settings_.seed, d, at)});
    }
  }
  const std::vector<Slope> found = slopes(directions, surrogate_);
  bool covered = true;
  for (std::size_t d = 0; d < directions.size(); ++d) {
    const auto number = static_cast<std::int64_t>(d);
    note_kinks(found[d], {}, number);
    covered = check_direction(directions[d], found[d], number) && covered;
  }
  if (covered) report_.checked = report_.coordinates;
  measure_distance(directions);
}

}  // namespace plumbline::differences
