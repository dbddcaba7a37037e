// reference/numeric/f192_arithmetic.cpp
//
// What f192.hpp leaves out of line: special values, quotient, square root, conversions, floor.
#include <cmath>

#include "reference/numeric/f192_limbs.hpp"

namespace plumbline {

using namespace limbs;

f192 f192::from_parts(const Parts& parts) {
  switch (parts.kind) {
    case Kind::zero: return zero(parts.negative);
    case Kind::infinite: return infinity(parts.negative);
    case Kind::nan: return nan();
    case Kind::finite: break;
  }
  Limbs<3> fraction = parts.limbs;
  const int shift = normalise<3>(fraction);
  if (shift == 192) return zero(parts.negative);
  if (parts.exponent < min_exponent) return zero(parts.negative);  // exponent - shift might wrap
  return from_normalised(parts.negative, parts.exponent - shift, fraction);
}

f192::Parts f192::parts() const {
  Parts result;
  result.negative = negative();
  if (is_nan()) {
    result.kind = Kind::nan;
  } else if (is_infinite()) {
    result.kind = Kind::infinite;
  } else if (!is_zero()) {
    result.kind = Kind::finite;
    result.exponent = exponent_;
    result.limbs = limbs();
  }
  return result;
}

f192 f192::product_rare(const f192& a, const f192& b) {
  if (a.is_nan() || b.is_nan()) return nan();
  const bool sign = a.negative_ != b.negative_;
  if (a.is_infinite() || b.is_infinite()) {
    return a.is_zero() || b.is_zero() ? nan() : infinity(sign);
  }
  if (a.is_zero() || b.is_zero()) return zero(sign);
  const f192 scaled = product_of_fractions(sign ? 1 : 0, 0, a.limb_, b.limb_);
  return ldexp(scaled, a.exponent_ + b.exponent_);
}

f192 f192::sum_rare(const f192& a, const f192& b, u64 flip) {
  if (a.is_nan() || b.is_nan()) return nan();
  f192 signed_b = b;
  signed_b.negative_ ^= flip;
  if (a.is_infinite()) {
    return signed_b.is_infinite() && a.negative_ != signed_b.negative_ ? nan() : a;
  }
  if (signed_b.is_infinite()) return signed_b;
  if (a.is_zero() && b.is_zero()) return zero((a.negative_ & signed_b.negative_) != 0);
  if (a.is_zero()) return signed_b;
  if (b.is_zero()) return a;
  // Both finite and at least one beside an end of the range: add in the middle of the range.
  const i64 scale = a.exponent_ > b.exponent_ ? a.exponent_ : b.exponent_;
  return ldexp(ldexp(a, -scale) + ldexp(signed_b, -scale), scale);
}

f192 f192::sum_cancelled(u64 negative, i64 exponent, u64 middle, u64 bottom, u64 guard) {
  // The numbers were within a factor of 2, so the guard limb is exact and nothing is rounded.
  const f192 difference = to_f192<4>(negative != 0, exponent, {guard, bottom, middle, 0});
  return difference.is_zero() ? f192() : difference;
}

namespace {

// A quotient or root in two steps: `head`, below the true value by less than 2^-98 of it, and a
// correction `tail` · 2^-226; value = head · 2^-127 + tail · 2^-226, in [1/2, 2).
f192 assemble(bool negative, i64 exponent, u128 head, u128 tail) {
  Limbs<4> value = {0, 0, low(head), high(head)};
  const u128 aligned_low = tail << 29;
  const Limbs<4> correction = {low(aligned_low), high(aligned_low), low(tail >> 99), 0};
  add<4>(value, correction);
  return to_f192<4>(negative, exponent + 1, value);
}

}  // namespace

// a / b after Karp and Markstein (ACM TOMS 23, 1997): x ≈ 1 / b to half the precision, head = a x,
// and the remainder a - head b, which is exact in integers, times x as the correction.
f192 f192::quotient(const f192& a, const f192& b) {
  if (a.is_nan() || b.is_nan()) return nan();
  const bool sign = a.negative_ != b.negative_;
  if (a.is_infinite()) return b.is_infinite() ? nan() : infinity(sign);
  if (b.is_infinite()) return zero(sign);
  if (b.is_zero()) return a.is_zero() ? nan() : infinity(sign);
  if (a.is_zero()) return zero(sign);

  // Seed: x0 = 2^63 / 0.b (1 - e), -2^-53 <= e < 2^-51.4. The 53-bit divisor is rounded up, so that
  // the seed stays below 2^64; the division is a single IEEE operation.
  const double divisor = static_cast<double>((b.limb_[2] >> 11) + 1);
  const u64 seed = static_cast<u64>(0x1p116 / divisor);
  // Newton: x = x0 (1 + e), scaled by 2^127, with e from the leading 128 bits of b. The error is
  // e^2 < 2^-102; e is kept as `e`, scaled by 2^113.
  const u128 low_part = u128{seed} * b.limb_[1];
  const u128 high_part = u128{seed} * b.limb_[2] + high(low_part);  // x0 b, scaled by 2^127
  const u128 deviation = (u128{1} << 127) - high_part;              // |.| < 2^76
  const i64 e = static_cast<i64>(static_cast<i128>(deviation) >> 14);
  const i128 step = static_cast<i128>(seed) * e;  // scaled by 2^176
  const u128 x = (u128{seed} << 64) + static_cast<u128>(step >> 49);
  // The head: two units cover the truncation of the product, two more that x might be too large
  // (b was cut and e rounded). Then head b <= a.
  const u128 head = multiply_high(wide(a.limb_[2], a.limb_[1]), x) - 4;
  // The remainder a - head b, scaled by 2^319, is below 2^219: four limbs modulo 2^256 hold it.
  Limbs<4> remainder = {0, a.limb_[0], a.limb_[1], a.limb_[2]};
  shift_left<4>(remainder, 63);
  Limbs<4> product = {b.limb_[0], b.limb_[1], b.limb_[2], 0};
  multiply<4>(product, low(head));
  subtract<4>(remainder, product);
  product = {b.limb_[0], b.limb_[1], b.limb_[2], 0};
  multiply<4>(product, high(head));
  subtract<4>(remainder, {0, product[0], product[1], product[2]});
  shift_right<4>(remainder, 28);  // from here on scaled by 2^(319 - 64 - 28) = 2^227
  const u128 tail = multiply_high(wide(remainder[2], remainder[1]), x);
  return assemble(sign, a.exponent_ - b.exponent_, head, tail);
}

// The same with y ≈ 1 / sqrt(v): head = v y, and the remainder v - head^2 times y / 2.
f192 sqrt(const f192& x) {
  if (x.is_nan() || x.is_zero()) return x;
  if (x.negative()) return f192::nan();
  if (x.is_infinite()) return x;
  // x = v · 2^(2 half), v in [1/4, 1)
  const int odd = static_cast<int>(x.exponent() & 1);
  const i64 half = (x.exponent() + odd) / 2;
  const Limbs<3> fraction = x.limbs();
  Limbs<4> v = {0, fraction[0], fraction[1], fraction[2]};
  shift_right<4>(v, odd);
  const u128 v_top = wide(v[3], v[2]);

  // Seed: y0 = 2^63 / sqrt(v) (1 - e / 2), |e| < 2^-49.9, by two IEEE operations.
  const double root = std::sqrt(static_cast<double>((v[3] >> 11) + 1) * 0x1p-53);
  const double inverse = 0x1p63 / root;
  const u64 seed = inverse < 0x1p64 ? static_cast<u64>(inverse) : ~u64{0};
  // Newton: y = y0 (1 + e / 2), e = 1 - v y0^2; short by 3/8 e^2 < 2^-101. `e` is scaled by 2^112.
  const u128 deviation = (u128{1} << 126) - multiply_high(v_top, u128{seed} * seed);
  const i64 e = static_cast<i64>(static_cast<i128>(deviation) >> 14);
  const i128 step = static_cast<i128>(seed) * e;
  const u128 y = (u128{seed} << 64) + static_cast<u128>(step >> 49);
  // Lowered by more than y, whose deviation was cut, can be too large: head^2 <= v.
  const u128 head = multiply_high(v_top, y) - 8;
  // The remainder, scaled by 2^254, is below 2^156.
  Limbs<4> remainder = v;
  shift_right<4>(remainder, 2);
  const u128 square_low = u128{low(head)} * low(head), square_high = u128{high(head)} * high(head);
  subtract<4>(remainder, {low(square_low), high(square_low), low(square_high), high(square_high)});
  const u128 cross = u128{high(head)} * low(head);
  Limbs<4> twice_cross = {0, low(cross), high(cross), 0};
  shift_left<4>(twice_cross, 1);
  subtract<4>(remainder, twice_cross);
  shift_right<4>(remainder, 28);
  const u128 tail = multiply_high(wide(remainder[1], remainder[0]), y);
  return assemble(false, half, head, tail);
}

namespace {

// Rounds once, to nearest even, into an IEEE format with `precision` bits (the leading one
// included) whose smallest normal number is 2^(min_exponent - 1).
template <class Float, class Bits, int precision, int min_exponent> Float to_ieee(const f192& x) {
  constexpr int width = static_cast<int>(sizeof(Bits)) * 8;
  constexpr Bits infinity = static_cast<Bits>(5 - 2 * min_exponent) << (precision - 1);
  const Bits sign = static_cast<Bits>(static_cast<Bits>(x.negative() ? 1 : 0) << (width - 1));
  if (x.is_nan()) return std::numeric_limits<Float>::quiet_NaN();
  const i64 exponent = x.exponent();
  if (exponent > 3 - min_exponent) return std::bit_cast<Float>(static_cast<Bits>(sign | infinity));
  const bool subnormal = exponent < min_exponent;
  const i64 bits = subnormal ? precision - (min_exponent - exponent) : precision;
  if (bits < 0) return std::bit_cast<Float>(sign);  // below half the smallest subnormal; zero too
  const Limbs<3> limbs = x.limbs();
  const u64 kept = bits == 0 ? 0 : limbs[2] >> (64 - bits);
  const u64 rest = limbs[2] << bits;
  const bool sticky = (limbs[1] | limbs[0]) != 0;
  constexpr u64 tie = u64{1} << 63;
  const bool up = rest > tie || (rest == tie && (sticky || (kept & 1) != 0));
  // The leading one of a normal number adds 1 to the exponent field, and so does a carry, up to
  // the encoding of infinity.
  const u64 field = subnormal ? 0 : static_cast<u64>(exponent - min_exponent);
  const u64 encoded = (field << (precision - 1)) + kept + (up ? 1 : 0);
  return std::bit_cast<Float>(static_cast<Bits>(sign | static_cast<Bits>(encoded)));
}

}  // namespace

f192::operator double() const { return to_ieee<double, u64, 53, -1021>(*this); }
f192::operator float() const { return to_ieee<float, std::uint32_t, 24, -125>(*this); }

f192::operator i64() const {
  if (is_nan() || exponent_ <= 0) return 0;
  if (exponent_ > 63) {
    return negative() ? std::numeric_limits<i64>::min() : std::numeric_limits<i64>::max();
  }
  const i64 magnitude = static_cast<i64>(limb_[2] >> (64 - exponent_));
  return negative() ? -magnitude : magnitude;
}

f192 trunc(const f192& x) {
  if (!x.is_finite() || x.is_zero() || x.exponent() >= 192) return x;
  if (x.exponent() <= 0) return f192::zero(x.negative());
  Limbs<3> limbs = x.limbs();
  int dropped = 192 - static_cast<int>(x.exponent());  // fraction bits
  for (u64& limb : limbs) {
    const int here = dropped < 64 ? dropped : 64;
    limb = here == 64 ? 0 : (limb >> here) << here;
    dropped -= here;
  }
  return f192::from_normalised(x.negative(), x.exponent(), limbs);
}

f192 floor(const f192& x) {
  const f192 whole = trunc(x);
  return x.negative() && whole != x && !x.is_nan() ? whole - 1 : whole;
}

f192 ceil(const f192& x) { return -floor(-x); }

f192 ldexp(const f192& x, i64 exponent) {
  if (!x.is_finite() || x.is_zero()) return x;
  const i128 moved = static_cast<i128>(x.exponent()) + exponent;
  if (moved > f192::max_exponent) return f192::infinity(x.negative());
  if (moved < f192::min_exponent) return f192::zero(x.negative());
  return f192::from_normalised(x.negative(), static_cast<i64>(moved), x.limbs());
}

}  // namespace plumbline
