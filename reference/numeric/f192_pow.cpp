// reference/numeric/f192_pow.cpp
//
// x^y = e^(y ln x). The exponent is as wrong relatively as the result is wrong times its size, up
// to 2^60, so the logarithm comes with 250 bits, and the product is formed in 320.
#include "reference/numeric/f192_kernels.hpp"

namespace plumbline {

using namespace limbs;

namespace {

enum class Whole { no, even, odd };

Whole wholeness(const f192& y) {  // of a finite, nonzero number
  const i64 fraction_bits = 192 - y.exponent();
  if (fraction_bits <= 0)
    return fraction_bits == 0 && (y.limbs()[0] & 1) != 0 ? Whole::odd : Whole::even;
  if (y.exponent() <= 0) return Whole::no;
  const Limbs<3> m = y.limbs();
  int trailing = 0;
  while (((m[static_cast<std::size_t>(trailing) / 64] >> (trailing % 64)) & 1) == 0) ++trailing;
  if (trailing < fraction_bits) return Whole::no;
  return trailing == fraction_bits ? Whole::odd : Whole::even;
}

}  // namespace

f192 pow(const f192& x, const f192& y) {
  if (y.is_zero() || x == 1) return 1;
  if (x.is_nan() || y.is_nan()) return f192::nan();
  if (y.is_infinite()) {
    const f192 size = abs(x);
    if (size == 1) return 1;
    return (size > 1) != y.negative() ? f192::infinity() : f192();
  }
  const Whole whole = wholeness(y);
  const bool negative = x.negative() && whole == Whole::odd;
  if (x.is_zero()) return y.negative() ? f192::infinity(negative) : f192::zero(negative);
  if (x.is_infinite()) return y.negative() ? f192::zero(negative) : f192::infinity(negative);
  if (x.negative() && whole == Whole::no) return f192::nan();

  const f192 size = abs(x);
  if (size == 1) return negative ? -1 : 1;
  const Wide l = wide_log(size);
  Limbs<5> product = multiply_high<5>(leading<5, 3>(y.limbs()), l.fraction);
  const i64 exponent = y.exponent() + l.exponent;  // the product is at least 2^(exponent - 2)
  const bool falling = l.negative != y.negative();
  if (exponent > 63) return falling ? f192::zero(negative) : f192::infinity(negative);
  shift_right_far<5>(product, static_cast<u64>(64 - exponent));
  const Fixed power = {product[4], {product[0], product[1], product[2], product[3]}};
  if (power.integer == 0 && power.fraction == Limbs<4>{}) return negative ? -1 : 1;
  const f192 result = exp_of_fixed(falling, power);
  return negative ? -result : result;
}

}  // namespace plumbline
