// reference/numeric/f192.hpp
//
// f192: a binary floating-point number with a 192-bit significand, the fast high precision.
//
// Guarantees, for all arguments in range:
//   + - * / sqrt      error below 0.501 ulp; a result that fits in 192 bits is exact
//   exp expm1 log log1p pow sin cos
//                     at least 180 correct bits, relative, also beside the zeros of the function
//                     (sin and cos: |x| < 2^1024, beyond that NaN)
//   conversions       from integers and double exact; to double and float rounded once, to nearest
//                     even, subnormals included
//   special values    infinities, NaN and signed zeros as IEEE 754 has them; no subnormals: a
//   result
//                     below the smallest number becomes a zero, one above the largest an infinity
//   bits              the same for every compiler, optimisation level and C library: integer
//                     arithmetic only, but for the seeds of two Newton steps, which use double
//                     operations that IEEE 754 rounds exactly
//
// A finite number is (-1)^negative · 0.L · 2^exponent with L the three limbs, top bit set, so the
// fraction lies in [1/2, 1). Exponents span ±(2^60 - 1): two bits less than the field could hold,
// for which products get every special case from a single comparison (see `exponent_of_zero`).
#pragma once

#include <array>
#include <bit>
#include <climits>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>

namespace plumbline {

class f192 {
  using u64 = std::uint64_t;
  using i64 = std::int64_t;
  __extension__ using u128 = unsigned __int128;

 public:
  enum class Kind : std::uint8_t { zero, finite, infinite, nan };

  // The exact contents. Limbs are little-endian and only meaningful for a finite number:
  // value = (-1)^negative · (limbs as a 192-bit integer) · 2^(exponent - 192).
  struct Parts {
    bool negative = false;
    Kind kind = Kind::zero;
    i64 exponent = 0;
    std::array<u64, 3> limbs{};
  };

  static constexpr i64 max_exponent = (i64{1} << 60) - 1;
  static constexpr i64 min_exponent = -max_exponent;

  constexpr f192() = default;

  template <std::integral Integer>
  constexpr f192(Integer value) {  // NOLINT(google-explicit-constructor): exact
    static_assert(sizeof(Integer) <= 8, "an integer of at most 64 bits is converted exactly");
    const bool below_zero = value < Integer{0};
    const u64 bits = static_cast<u64>(value);
    set_integer(below_zero, below_zero ? u64{0} - bits : bits, 64);
  }

  constexpr f192(double value) {  // NOLINT(google-explicit-constructor): exact
    const u64 bits = std::bit_cast<u64>(value);
    const u64 fraction = bits & ((u64{1} << 52) - 1);
    const i64 biased = static_cast<i64>((bits >> 52) & 0x7ff);
    const bool below_zero = (bits >> 63) != 0;
    if (biased == 0x7ff) {
      negative_ = fraction == 0 && below_zero ? 1 : 0;
      exponent_ = fraction == 0 ? exponent_of_infinity : exponent_of_nan;
    } else if (biased == 0) {
      set_integer(below_zero, fraction, 64 - 1074);
    } else {
      set_integer(below_zero, fraction | (u64{1} << 52), 64 - 1075 + biased);
    }
  }

  f192(long double) = delete;  // it would lose bits on the way through double

  explicit operator double() const;
  explicit operator float() const;
  explicit operator i64() const;  // towards zero; out of range: the nearest; NaN: 0

  static constexpr f192 infinity(bool negative = false) {
    return f192(negative ? 1 : 0, exponent_of_infinity, 0, 0, 0);
  }
  static constexpr f192 nan() { return f192(0, exponent_of_nan, 0, 0, 0); }
  static constexpr f192 zero(bool negative) {
    return f192(negative ? 1 : 0, exponent_of_zero, 0, 0, 0);
  }

  // Precondition: the top bit of limbs[2] is set. An exponent out of range gives infinity or zero.
  static constexpr f192 from_normalised(bool negative, i64 exponent,
                                        const std::array<u64, 3>& limbs) {
    if (exponent > max_exponent) return infinity(negative);
    if (exponent < min_exponent) return zero(negative);
    return f192(negative ? 1 : 0, exponent, limbs[2], limbs[1], limbs[0]);
  }
  static f192 from_parts(const Parts& parts);  // any limbs; normalises, exact but for saturation
  Parts parts() const;

  constexpr bool negative() const { return negative_ != 0; }
  constexpr bool is_nan() const { return exponent_ == exponent_of_nan; }
  constexpr bool is_infinite() const { return exponent_ == exponent_of_infinity; }
  constexpr bool is_zero() const { return exponent_ == exponent_of_zero; }
  constexpr bool is_finite() const { return exponent_ < exponent_of_infinity; }
  // Finite, nonzero numbers: their fraction and exponent. For the others the exponent still orders:
  // zero < finite < infinite.
  constexpr i64 exponent() const { return exponent_; }
  constexpr std::array<u64, 3> limbs() const { return {limb_[0], limb_[1], limb_[2]}; }

  constexpr f192 operator+() const { return *this; }
  constexpr f192 operator-() const {
    f192 result = *this;
    result.negative_ ^= is_nan() ? 0 : 1;
    return result;
  }

  [[gnu::always_inline]] friend inline f192 operator+(const f192& a, const f192& b) {
    return sum(a, b, 0);
  }
  [[gnu::always_inline]] friend inline f192 operator-(const f192& a, const f192& b) {
    return sum(a, b, 1);
  }
  [[gnu::always_inline]] friend inline f192 operator*(const f192& a, const f192& b) {
    return product(a, b);
  }
  friend f192 operator/(const f192& a, const f192& b) { return quotient(a, b); }

  f192& operator+=(const f192& other) { return *this = *this + other; }
  f192& operator-=(const f192& other) { return *this = *this - other; }
  f192& operator*=(const f192& other) { return *this = *this * other; }
  f192& operator/=(const f192& other) { return *this = *this / other; }

  friend constexpr bool operator==(const f192& a, const f192& b) {
    const bool same_size = a.exponent_ == b.exponent_ && a.limb_[2] == b.limb_[2] &&
                           a.limb_[1] == b.limb_[1] && a.limb_[0] == b.limb_[0];
    return same_size && !a.is_nan() && (a.negative_ == b.negative_ || a.is_zero());
  }
  friend constexpr std::partial_ordering operator<=>(const f192& a, const f192& b) {
    if (a.is_nan() || b.is_nan()) return std::partial_ordering::unordered;
    if (a.negative_ != b.negative_) {
      if (a.is_zero() && b.is_zero()) return std::partial_ordering::equivalent;
      return a.negative_ != 0 ? std::partial_ordering::less : std::partial_ordering::greater;
    }
    if (smaller(a, b)) {
      return a.negative_ != 0 ? std::partial_ordering::greater : std::partial_ordering::less;
    }
    if (smaller(b, a)) {
      return a.negative_ != 0 ? std::partial_ordering::less : std::partial_ordering::greater;
    }
    return std::partial_ordering::equivalent;
  }

 private:
  // Exponents of the special values. Their sums with each other and with finite exponents never
  // fall into the finite range, so a product has to look at the sum only:
  //   zero + finite < -2^61, zero + infinity = -2^61, infinity + finite >= 2^60 + 1, and so on;
  //   zero + zero = -2^63 still fits.
  static constexpr i64 exponent_of_zero = -(i64{1} << 62);
  static constexpr i64 exponent_of_infinity = i64{1} << 61;
  static constexpr i64 exponent_of_nan = exponent_of_infinity + 1;

  constexpr f192(u64 negative, i64 exponent, u64 limb2, u64 limb1, u64 limb0)
      : limb_{limb0, limb1, limb2}, exponent_(exponent), negative_(negative) {}

  // magnitude · 2^(exponent - 64)
  constexpr void set_integer(bool below_zero, u64 magnitude, i64 exponent) {
    negative_ = below_zero ? 1 : 0;
    if (magnitude == 0) return;
    const int zeros = std::countl_zero(magnitude);
    limb_[2] = magnitude << zeros;
    exponent_ = exponent - zeros;
  }

  static constexpr u64 low(u128 x) { return static_cast<u64>(x); }
  static constexpr u64 high(u128 x) { return static_cast<u64>(x >> 64); }
  static constexpr u128 wide(u64 top, u64 bottom) { return (u128{top} << 64) | bottom; }

  // |a| < |b|, written without branches: in sums the answer is as good as random.
  static constexpr bool smaller(const f192& a, const f192& b) {
    const u128 a_top = wide(static_cast<u64>(a.exponent_ - exponent_of_zero), a.limb_[2]);
    const u128 b_top = wide(static_cast<u64>(b.exponent_ - exponent_of_zero), b.limb_[2]);
    const int below = a_top < b_top;
    const int equal = a_top == b_top;
    const int rest = wide(a.limb_[1], a.limb_[0]) < wide(b.limb_[1], b.limb_[0]);
    return (below | (equal & rest)) != 0;
  }

  // Whether an exponent is so far inside the finite range that the few bits by which
  // normalisation moves it cannot lead out; false for all special values.
  static constexpr bool well_inside(i64 exponent) {
    constexpr i64 limit = max_exponent - 256;
    return static_cast<u64>(exponent) + static_cast<u64>(limit) < 2 * static_cast<u64>(limit);
  }

  // limbs top:middle:bottom plus the leading bit of the limb below them
  [[gnu::always_inline]] static inline f192 rounded(u64 negative, i64 exponent, u64 top, u64 middle,
                                                    u64 bottom, u64 guard) {
    const u128 lower = wide(middle, bottom) + (guard >> 63);
    const u64 carry = (lower >> 64) < middle ? 1 : 0;
    top += carry;
    if (top < carry) [[unlikely]] {  // all ones became a power of two
      return f192(negative, exponent + 1, u64{1} << 63, 0, 0);
    }
    return f192(negative, exponent, top, high(lower), low(lower));
  }

  [[gnu::always_inline]] static inline f192 product(const f192& a, const f192& b) {
    const i64 exponent = a.exponent_ + b.exponent_;
    const u64 negative = a.negative_ ^ b.negative_;
    if (!well_inside(exponent)) [[unlikely]]
      return product_rare(a, b);
    return product_of_fractions(negative, exponent, a.limb_, b.limb_);
  }

  // Four limbs of the product; of what lies below only the larger half is computed, which leaves
  // the fourth limb short by less than 3 units, 2^-62 ulp. Where the whole product fits in 192
  // bits the omitted part is zero: a and b then end in at least 191 zero bits between them.
  [[gnu::always_inline]] static inline f192 product_of_fractions(u64 negative, i64 exponent,
                                                                 const u64* a, const u64* b) {
    const u128 p02 = u128{a[0]} * b[2], p11 = u128{a[1]} * b[1], p20 = u128{a[2]} * b[0];
    const u128 p12 = u128{a[1]} * b[2], p21 = u128{a[2]} * b[1], p22 = u128{a[2]} * b[2];
    u128 lower = p02 + p11;
    u64 carry = lower < p11;
    lower += p20;
    carry += lower < p20;
    const u128 below = u128{high(u128{a[0]} * b[1])} + high(u128{a[1]} * b[0]);
    lower += below;
    carry += lower < below;
    u128 upper = p12 + p21;
    u64 carry2 = upper < p21;
    const u128 t = wide(carry, high(lower));
    upper += t;
    carry2 += upper < t;
    u128 top = p22 + wide(carry2, high(upper));
    u128 bottom = wide(low(upper), low(lower));
    const u64 shift = (high(top) >> 63) ^ 1;  // the product of fractions is in [1/4, 1)
    const u64 mask = u64{0} - shift;
    top += wide(high(top) & mask, low(top) & mask) + ((low(upper) >> 63) & shift);
    bottom += wide(high(bottom) & mask, low(bottom) & mask);
    return rounded(negative, exponent - static_cast<i64>(shift), high(top), low(top), high(bottom),
                   low(bottom));
  }

  // a + b, or a - b with flip = 1. The smaller number is cut off behind a fourth limb; a bit is
  // lost there only when the numbers are 2^63 apart, and then at most one leading bit cancels.
  [[gnu::always_inline]] static inline f192 sum(const f192& a, const f192& b, u64 flip) {
    const bool swap = smaller(a, b);
    const f192& x = swap ? b : a;
    const f192& y = swap ? a : b;
    const u64 negative = x.negative_ ^ (swap ? flip : 0);
    if (!well_inside(x.exponent_)) [[unlikely]]
      return sum_rare(a, b, flip);
    const u64 distance = static_cast<u64>(x.exponent_) - static_cast<u64>(y.exponent_);
    u64 y2 = y.limb_[2], y1 = y.limb_[1], y0 = y.limb_[0], guard = 0;
    if (distance >= 64) {
      if (distance >= 256) return f192(negative, x.exponent_, x.limb_[2], x.limb_[1], x.limb_[0]);
      guard = y0, y0 = y1, y1 = y2, y2 = 0;
      if (distance >= 128) guard = y0, y0 = y1, y1 = 0;
      if (distance >= 192) guard = y0, y0 = 0;
    }
    const u64 right = distance & 63, left = 63 - right;  // shifted left in two steps: 64 is too far
    guard = (guard >> right) | ((y0 << 1) << left);
    y0 = (y0 >> right) | ((y1 << 1) << left);
    y1 = (y1 >> right) | ((y2 << 1) << left);
    y2 >>= right;
    // A difference is a sum with the complement. It carries out always, a sum says so by `carry`.
    const u64 mask = u64{0} - (a.negative_ ^ b.negative_ ^ flip);
    const u64 one = mask & 1;
    const u128 y_lower = wide(y0 ^ mask, guard ^ mask), y_upper = wide(y2 ^ mask, y1 ^ mask);
    u128 lower = wide(x.limb_[0], 0) + y_lower;
    u64 carry = lower < y_lower;
    lower += one;
    carry += lower < one;
    u128 upper = wide(x.limb_[2], x.limb_[1]) + y_upper;
    u64 carry_out = upper < y_upper;
    upper += carry;
    carry_out = (carry_out + (upper < carry)) & ~mask;
    // Make room for the carry first, then one shift to the left serves both cases.
    const u64 t2 = (high(upper) >> 1) | (carry_out << 63);
    const u64 t1 = low(upper >> 1);
    const u64 t0 = (high(lower) >> 1) | (low(upper) << 63);
    const u64 t = low(lower >> 1);
    if (t2 == 0) [[unlikely]]
      return sum_cancelled(negative, x.exponent_ + 1, t1, t0, t);
    const int up = std::countl_zero(t2), down = 63 - up;
    return rounded(negative, x.exponent_ + 1 - up, (t2 << up) | ((t1 >> 1) >> down),
                   (t1 << up) | ((t0 >> 1) >> down), (t0 << up) | ((t >> 1) >> down), t << up);
  }

  static f192 product_rare(const f192& a, const f192& b);
  static f192 sum_rare(const f192& a, const f192& b, u64 flip);
  static f192 sum_cancelled(u64 negative, i64 exponent, u64 middle, u64 bottom, u64 guard);
  static f192 quotient(const f192& a, const f192& b);

  u64 limb_[3] = {0, 0, 0};
  i64 exponent_ = exponent_of_zero;
  u64 negative_ = 0;
};

f192 sqrt(const f192& x);
f192 exp(const f192& x);
f192 expm1(const f192& x);
f192 log(const f192& x);
f192 log1p(const f192& x);
f192 pow(const f192& x, const f192& y);  // special cases as C's pow has them
f192 sin(const f192& x);
f192 cos(const f192& x);
f192 floor(const f192& x);
f192 ceil(const f192& x);
f192 trunc(const f192& x);
f192 ldexp(const f192& x, std::int64_t exponent);  // exact; saturates
f192 pi_f192();
f192 ln2_f192();

constexpr f192 abs(const f192& x) { return x.negative() ? -x : x; }
constexpr f192 fabs(const f192& x) { return abs(x); }
constexpr bool isnan(const f192& x) { return x.is_nan(); }
constexpr bool isinf(const f192& x) { return x.is_infinite(); }
constexpr bool isfinite(const f192& x) { return x.is_finite(); }
constexpr bool signbit(const f192& x) { return x.negative(); }

}  // namespace plumbline

// min_exponent and the like are int, too narrow for the true range: they are as far as they go.
template <> class std::numeric_limits<plumbline::f192> {
  using f192 = plumbline::f192;
  static constexpr std::array<std::uint64_t, 3> half = {0, 0, std::uint64_t{1} << 63};

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = false;
  static constexpr std::float_denorm_style has_denorm = std::denorm_absent;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr int radix = 2;
  static constexpr int digits = 192;
  static constexpr int digits10 = 57;      // floor(191 · log10 2)
  static constexpr int max_digits10 = 59;  // ceil(1 + 192 · log10 2)
  static constexpr int min_exponent = -INT_MAX;
  static constexpr int min_exponent10 = -INT_MAX;
  static constexpr int max_exponent = INT_MAX;
  static constexpr int max_exponent10 = INT_MAX;

  static constexpr f192 min() { return f192::from_normalised(false, f192::min_exponent, half); }
  static constexpr f192 max() {
    return f192::from_normalised(false, f192::max_exponent, {~0ull, ~0ull, ~0ull});
  }
  static constexpr f192 lowest() { return -max(); }
  static constexpr f192 epsilon() { return f192::from_normalised(false, -190, half); }  // 2^-191
  static constexpr f192 round_error() { return f192::from_normalised(false, 0, half); }
  static constexpr f192 infinity() { return f192::infinity(); }
  static constexpr f192 quiet_NaN() { return f192::nan(); }
  static constexpr f192 signaling_NaN() { return f192::nan(); }
  static constexpr f192 denorm_min() { return min(); }
};
