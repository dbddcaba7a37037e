// reference/numeric/precision.hpp: the names of the working precisions (numeric/scalar.hpp has their types).
#pragma once
#include <span>
#include <string_view>

namespace plumbline {

// The last three are what contracts are evaluated in; they have no name for a user.
enum class Precision { f32, f64, f192, mp50, mp100, bounded, bounded192, simulated };
inline std::span<const std::string_view> names_of(Precision) {
  static constexpr std::string_view names[] = {"f32", "f64", "f192", "mp50", "mp100"};
  return names;
}

}  // namespace plumbline
