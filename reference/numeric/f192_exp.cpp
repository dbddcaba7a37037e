// reference/numeric/f192_exp.cpp
//
// exp and expm1 by table look-up after P. T. P. Tang (ACM TOMS 15, 1989), in fixed point:
//   |x| = ± (k ln 2 + r), 0 <= r < ln 2;  r = i0 / 2^7 + i1 / 2^14 + i2 / 2^21 + s, s < 2^-21
//   e^r = e^(i0 / 2^7) · e^(i1 / 2^14) · e^(i2 / 2^21) · e^s
// with e^s from eight (exp) or eleven (expm1) terms of its Taylor series.
#include "reference/numeric/f192_kernels.hpp"

namespace plumbline {

using namespace limbs;

namespace {

constexpr int level_bits = 7, levels = 3, level_size = 1 << level_bits;
constexpr int reduced_bits = levels * level_bits;
constexpr int last_coefficient = 9;  // s^11 / 11! < 2^-256

struct ExpTable {
  // Level 0: e^(i / 2^7) / 2 for i < 89 (r < ln 2 < 89 / 2^7). Levels 1 and 2: e^(i / 2^14) - 1
  // and e^(i / 2^21) - 1.
  Limbs<4> entry[levels][level_size];
  Limbs<4> coefficient[last_coefficient + 1];  // 1 / (j + 2)!

  ExpTable() {
    for (std::size_t level = 0; level < levels; ++level) {
      const std::size_t entries = level == 0 ? 89 : level_size;
      for (std::size_t i = 0; i < entries; ++i) entry[level][i] = fill(level, i);
    }
    for (std::size_t i = 89; i < level_size; ++i) entry[0][i] = {};  // never used
    Limbs<6> factorial = {0, 0, 0, 0, 0, u64{1} << 63};
    for (std::size_t j = 0; j <= last_coefficient; ++j) {
      coefficient[j] = rounded_to_4(factorial);
      divide<6>(factorial, j + 3);
    }
  }

  static Limbs<4> rounded_to_4(const Limbs<6>& a) {
    Limbs<4> result = leading<4, 6>(a);
    add<4>(result, {a[1] >> 63, 0, 0, 0});
    return result;
  }

  // The series of e^x - 1 at x = i / 2^(7 (level + 1)), with 384 bits.
  static Limbs<4> fill(std::size_t level, std::size_t i) {
    const int bits = level_bits * (static_cast<int>(level) + 1);
    Limbs<6> term = {0, 0, 0, 0, 0, static_cast<u64>(i) << (64 - bits)};
    Limbs<6> sum = term;
    for (u64 n = 2; term != Limbs<6>{}; ++n) {
      shift_right<6>(term, bits);  // first, so that the product with i stays below 1
      multiply<6>(term, i);
      divide<6>(term, n);
      add<6>(sum, term);
    }
    if (level == 0) {
      shift_right<6>(sum, 1);
      sum[5] |= u64{1} << 63;
    }
    return rounded_to_4(sum);
  }
};

const ExpTable& exp_table() {
  static const ExpTable table;
  return table;
}

// e^r / 2 for r in [0, ln 2 + 2^-64), as 0.fraction · 2^exponent with the top bit set and exponent
// 0, or 1 where r reaches ln 2. The error is below 7 units of 2^(-64 n). Only the last product can
// carry: up to there stands e^(r cut to 21 bits) / 2 at most, and ln 2 + 2^-64 cut is below ln 2.
template <int n> struct Mantissa {
  Limbs<n> fraction;
  int exponent;
};

template <int n, int last>
[[gnu::always_inline]] inline Mantissa<n> exp_of_reduced(const ExpTable& table, const Limbs<n>& r) {
  const u64 top = r[n - 1];
  const Limbs<n> e0 = leading<n, 4>(table.entry[0][top >> 57]);
  const Limbs<n> e1 = leading<n, 4>(table.entry[1][(top >> 50) & 127]);
  const Limbs<n> e2 = leading<n, 4>(table.entry[2][(top >> 43) & 127]);
  Limbs<n> s = r;
  s[n - 1] = top & ((u64{1} << 43) - 1);
  // e^s - 1 = s + s (s h(s)), h = 1/2 + s/6 + …
  const Limbs<n> h = horner<n, reduced_bits, 2 * reduced_bits, last, false>(table.coefficient, s);
  Limbs<n> small = multiply_high<n>(multiply_high<n>(h, s), s);
  add<n>(small, s);
  // (1 + e2) (1 + small) - 1
  const Limbs<n> both = multiply_high<n>(e2, small);
  add<n>(small, e2);
  add<n>(small, both);
  Limbs<n> result = e0;
  add<n>(result, multiply_high<n>(e0, e1));
  if (add<n>(result, multiply_high<n>(result, small)) != 0) [[unlikely]] {
    shift_right<n>(result, 1);
    result[n - 1] |= u64{1} << 63;
    return {result, 1};
  }
  return {result, 0};
}

// ± y = k ln 2 + r with r in [0, ln 2 + 2^-64)
struct Reduced {
  i64 k;
  Limbs<4> r;
};

[[gnu::always_inline]] inline Reduced reduce(bool negative, const Fixed& y) {
  // An estimate of floor(y / ln 2), never above it and below by at most one: the constant,
  // 2^63 / ln 2, and y are cut off.
  constexpr u64 inverse_ln2 = 0xb8aa3b295c17f0bb;
  const u128 quotient = u128{y.integer} * inverse_ln2 + high(u128{y.fraction[3]} * inverse_ln2);
  i64 k = static_cast<i64>(low(quotient >> 63));
  if (negative) ++k;
  constexpr Limbs<4> ln2_fraction = leading<4, 5>(ln2_limbs);
  Limbs<4> part = ln2_fraction;
  const u64 part_top = multiply<4>(part, static_cast<u64>(k));
  Limbs<5> multiple = {part[0], part[1], part[2], part[3], part_top};
  Limbs<5> r = {y.fraction[0], y.fraction[1], y.fraction[2], y.fraction[3], y.integer};
  constexpr Limbs<5> ln2 = {ln2_fraction[0], ln2_fraction[1], ln2_fraction[2], ln2_fraction[3], 0};
  if (negative) {
    subtract<5>(multiple, r);
    r = multiple;
    k = -k;
    if ((r[4] >> 63) != 0) [[unlikely]] {
      add<5>(r, ln2);
      --k;
    }
  } else {
    subtract<5>(r, multiple);
  }
  if (r[4] != 0 || r[3] > ln2[3]) [[unlikely]] {
    subtract<5>(r, ln2);
    ++k;
  }
  return {k, {r[0], r[1], r[2], r[3]}};
}

// |x| for |x| < 2^60; bits below 2^-256 are dropped.
[[gnu::always_inline]] inline Fixed to_fixed(const f192& x) {
  const Limbs<3> m = x.limbs();
  Limbs<5> placed = {0, m[0], m[1], m[2], 0};
  const i64 exponent = x.exponent();
  if (exponent >= 0) {
    shift_left<5>(placed, static_cast<int>(exponent));
  } else {
    shift_right_far<5>(placed, static_cast<u64>(-exponent));
  }
  return {placed[4], {placed[0], placed[1], placed[2], placed[3]}};
}

f192 saturated(bool negative) { return negative ? f192() : f192::infinity(); }

}  // namespace

f192 exp_of_fixed(bool negative, const Fixed& y) {
  if ((y.integer >> 60) != 0) return saturated(negative);
  const Reduced reduced = reduce(negative, y);
  const Mantissa<3> m = exp_of_reduced<3, 6>(exp_table(), leading<3, 4>(reduced.r));
  return f192::from_normalised(false, reduced.k + 1 + m.exponent, m.fraction);
}

f192 exp(const f192& x) {
  if (x.is_nan()) return x;
  if (x.exponent() > 60) return saturated(x.negative());  // infinities too
  if (x.exponent() < -200) return 1;                      // zeros too
  return exp_of_fixed(x.negative(), to_fixed(x));
}

f192 expm1(const f192& x) {
  if (x.is_nan() || x.is_zero()) return x;
  if (x.exponent() >= 0) return exp(x) - 1;  // |x| >= 1/2: at most 2 bits cancel
  if (x.exponent() < -60) {
    // x + x^2/2 + x^3/6 + x^4/24, the rest being below 2^-240 x
    static const f192 sixth = f192(1) / 6, twenty_fourth = sixth / 4;
    return x + x * x * (ldexp(f192(1), -1) + x * (sixth + x * twenty_fourth));
  }
  // With 256 bits: e^x - 1 loses at most 62 of them.
  const Reduced reduced = reduce(x.negative(), to_fixed(x));
  const Mantissa<4> m = exp_of_reduced<4, last_coefficient>(exp_table(), reduced.r);
  // e^x = 0.m · 2^(k + 1), k + 1 in {0, 1} since |x| < 1/2 < ln 2
  Limbs<5> value = {m.fraction[0], m.fraction[1], m.fraction[2], m.fraction[3], 0};
  shift_left<5>(value, static_cast<int>(reduced.k) + 1 + m.exponent);
  if (!x.negative()) {
    value[4] -= 1;
    return to_f192<5>(false, 64, value);
  }
  negate<5>(value);
  value[4] += 1;
  return to_f192<5>(true, 64, value);
}

}  // namespace plumbline
