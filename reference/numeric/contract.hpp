// reference/numeric/contract.hpp
//
// What a kernel declares of its arithmetic, as plain data, and the names that an operation's text shares with it: the
// places where a kernel may store an intermediate in fewer bits, and the numbers that every element of a row has in
// common. A bound holds for every execution that a contract allows. verdict/contract.hpp has its JSON and the presets;
// docs/contracts.md explains each field.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plumbline {

enum class Point {
  proj_out,
  norm_out,
  rope_out,
  index_scores,
  scores,
  probabilities,
  head_sum,
  target,
  output,
  delta,
  dscores
};
inline constexpr std::size_t points = 11;
inline std::span<const std::string_view> names_of(Point) {
  static constexpr std::string_view names[] = {
      "proj_out", "norm_out", "rope_out", "index_scores", "scores", "probabilities",
      "head_sum", "target",   "output",   "delta",        "dscores"};
  return names;
}
enum class Symbol { log_sum_exp, delta, target_normaliser, sum_of_u };

// A binary format: p bits of precision (the hidden one included), its smallest normal exponent.
enum class Format { f32, f64, tf32, f16, bf16, f8_e4m3, f8_e5m2 };
inline std::span<const std::string_view> names_of(Format) {
  static constexpr std::string_view names[] = {"f32",  "f64",     "tf32",   "f16",
                                               "bf16", "f8_e4m3", "f8_e5m2"};
  return names;
}
struct FormatShape {
  int precision, least_exponent;
};
constexpr FormatShape shape_of(Format format) {
  constexpr FormatShape shapes[] = {{24, -126}, {53, -1022}, {11, -126}, {11, -14},
                                    {8, -126},  {4, -6},     {3, -14}};
  return shapes[static_cast<std::size_t>(format)];
}

struct Accumulator {
  enum class Rounding { nearest, truncate };
  Format format = Format::f32;
  Rounding rounding = Rounding::nearest;
  std::int64_t block = 0;  // products added at once, aligned to the largest; 0: one at a time
  std::int64_t fraction_bits = 0;  // kept of each in such a block
  std::int64_t promotion = 0;      // additions after which a sum moves on to f32; 0: never
};
inline std::span<const std::string_view> names_of(Accumulator::Rounding) {
  static constexpr std::string_view names[] = {"nearest", "truncate"};
  return names;
}

struct Algebra {
  enum class Softmax { two_pass, online } softmax = Softmax::two_pass;
  std::int64_t tile = 64;  // keys between rescalings of an online softmax
  enum class Delta { from_output, from_probabilities } delta = Delta::from_output;
  enum class Divergence { from_logs, from_probabilities } divergence = Divergence::from_logs;
  enum class Normaliser { unrounded, stored } normaliser = Normaliser::unrounded;
  enum class Cast { once_per_key, per_value_chunk } cast = Cast::once_per_key;
  enum class Scores { recomputed, stored } scores = Scores::recomputed;
};

struct
    Ulp {  // accuracy of elementary functions, in units in the last place of the accumulator's format
  double exp = 2, exp2 = 2, log = 2, rsqrt = 2, sin = 2, cos = 2, division = 1;
};

struct Contract {
  std::string name;
  Format input = Format::f32, storage = Format::f32, output = Format::f32;
  Accumulator accumulator;
  std::array<std::optional<Format>, points> rounding_points;
  Algebra algebra;
  Ulp ulp;
  bool flush_to_zero = false;
};

// The numbers that rules of bounds and executions take from a contract.
struct Arithmetic {
  double unit = 0x1p-24;      // of one operation
  double least = 0x1p-149;    // what underflow may cost
  double add_unit = 0x1p-24;  // of one addition in a sum
  double block = 0, block_unit = 0, promotion = 0;
  double exp = 0, log = 0, rsqrt = 0, sin = 0, cos = 0, division = 0;  // relative
  std::int64_t tile = 0;                                               // 0: two passes
  std::array<double, points> point_unit{}, point_least{};
  bool nearest = true, flush = false;

  // Error of a sum of n terms in any order, over the sum of their magnitudes.
  double sum_error(double n) const {
    const double plain = (n + 1) * add_unit;
    double error = plain / (1 - plain);
    if (!(plain < 1)) return 1e300;
    if (block > 0) {
      const double steps = n / block + 1, each = block_unit;
      error = promotion > 0 && n > promotion
                  ? (promotion / block + 1) * each + (n / promotion + 2) * unit * 2
                  : steps * each;
      error += error * error;
    }
    return error;
  }
};
Arithmetic arithmetic_of(const Contract& contract);

// The arithmetic that bounded and simulated numbers of this thread obey.
inline constexpr Arithmetic plain_arithmetic;
inline constinit thread_local const Arithmetic* current_arithmetic = &plain_arithmetic;
inline const Arithmetic*& this_arithmetic() { return current_arithmetic; }

}  // namespace plumbline
