#include "reference/numeric/contract.hpp"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

double unit_of(Format format) { return std::ldexp(1.0, -shape_of(format).precision); }
double least_of(Format format, bool flush) {
  const FormatShape shape = shape_of(format);
  return std::ldexp(1.0, flush ? shape.least_exponent : shape.least_exponent - shape.precision + 1);
}

}  // namespace

Arithmetic arithmetic_of(const Contract& contract) {
  Arithmetic a;
  const Accumulator& acc = contract.accumulator;
  // Between sums a kernel computes in f32, or in the accumulator's format where that is wider.
  const Format wide = acc.format == Format::f64 ? Format::f64 : Format::f32;
  a.unit = unit_of(wide);
  a.flush = contract.flush_to_zero;
  a.least = least_of(wide, contract.flush_to_zero);
  a.nearest = acc.rounding == Accumulator::Rounding::nearest;
  a.add_unit = unit_of(acc.format) * (a.nearest ? 1 : 2);
  if (acc.block > 0) {
    a.block = static_cast<double>(acc.block);
    const double kept = std::ldexp(1.0, -static_cast<int>(acc.fraction_bits));
    a.block_unit = (a.block + 1) * kept + a.add_unit;
    a.promotion = static_cast<double>(acc.promotion);
  }
  // An ulp is two units.
  const auto relative = [&](double ulp) { return 2 * ulp * a.unit; };
  a.exp = relative(std::max(contract.ulp.exp, contract.ulp.exp2));
  a.log = relative(contract.ulp.log);
  a.rsqrt = relative(contract.ulp.rsqrt);
  a.sin = relative(contract.ulp.sin);
  a.cos = relative(contract.ulp.cos);
  a.division = relative(contract.ulp.division);
  a.tile = contract.algebra.softmax == Algebra::Softmax::online ? contract.algebra.tile : 0;
  for (std::size_t i = 0; i < points; ++i) {
    if (!contract.rounding_points[i]) continue;
    a.point_unit[i] = unit_of(*contract.rounding_points[i]);
    a.point_least[i] = least_of(*contract.rounding_points[i], contract.flush_to_zero);
  }
  return a;
}

}  // namespace plumbline
