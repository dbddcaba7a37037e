// reference/numeric/f192_log.cpp
//
// log and log1p by multiplicative reduction (W. F. Wong and E. Goto, IEEE TC 43, 1994), in fixed
// point and exact up to the series: for x = 0.m · 2^e
//   0.m · c0 · (1 + a1) · (1 + a2) = 1 - v,  0 <= v < 2^-20.9,
//   ln x = e ln 2 - ln c0 - ln(1 + a1) - ln(1 + a2) - (v + v^2 (1/2 + v/3 + v^2/4 + …)).
// c0 = n / 2^9, a1 = A / 2^15 and a2 = j / 2^21 have so few bits that the product needs
// 192 + 9 + 15 + 21 = 237 <= 256 bits: v is exact. Each factor is cut so that v never turns
// negative.
// Beside 1 (|x - 1| < 2^-21) the series alone does it, multiplied out relative to x - 1, which is
// exact; elsewhere |ln x| > 2^-22 and absolute errors of 2^-230 are small relatively.
#include "reference/numeric/f192_kernels.hpp"

namespace plumbline {

using namespace limbs;

namespace {

constexpr int series_bits = 20;         // v < 2^-20.9; whole bits by which v can be shifted up
constexpr int near_one_exponent = -21;  // |x - 1| < 2^-21
constexpr int last_narrow = 8;          // v^9 / 11 < 2^-191, and it is multiplied by v^2
constexpr int last_wide = 12;           // v^13 / 15 < 2^-275

// Level 0: i = the 7 bits behind the leading one of m; m < (129 + i) / 2^8, so c0 = n / 2^9 with
// n = floor(2^17 / (129 + i)) keeps the product below 1, and v < 1 / (129 + i) + (128 + i) / 2^17
// <= 143.1 / 2^14.
// Level 1: j = floor(2^14 v) and A = floor(2^15 j / (2^14 - j)), that is 1 + a1 <= 1 / (1 - v);
// leaves v < 2^-14 (1 + a1) + 2^-15 < 193.4 / 2^21.
// Level 2: j = floor(2^21 v); leaves v < 2^-21 + v^2 < 2^-20.9.
constexpr std::size_t size0 = 128, size1 = 144, size2 = 194;

struct LogTable {
  u64 n[size0], a[size1];
  // The logarithms as fractions of 320 bits, the leading 256 and the rest apart: log needs only
  // the former, and they should stay close together.
  Limbs<4> log0[size0], log1[size1], log2[size2];
  u64 rest0[size0], rest1[size1], rest2[size2];
  Limbs<4> coefficient[last_wide + 1];  // 1 / (j + 2)

  LogTable() {
    // ln(n / 2^9) as running sums of ln(n / (n - 1)); as i falls, n rises.
    Limbs<6> sum{};
    u64 at = 512;
    for (std::size_t i = size0; i-- > 0;) {
      n[i] = (u64{1} << 17) / (129 + i);
      while (at < n[i]) add<6>(sum, log_of_step(++at));
      store(sum, log0[i], rest0[i]);
    }
    sum = {};
    at = u64{1} << 15;
    for (std::size_t j = 0; j < size1; ++j) {
      a[j] = (j << 15) / ((1 << 14) - j);
      while (at < (u64{1} << 15) + a[j]) add<6>(sum, log_of_step(++at));
      store(sum, log1[j], rest1[j]);
    }
    sum = {};
    at = u64{1} << 21;
    for (std::size_t j = 0; j < size2; ++j) {
      while (at < (u64{1} << 21) + j) add<6>(sum, log_of_step(++at));
      store(sum, log2[j], rest2[j]);
    }
    for (std::size_t j = 0; j <= last_wide; ++j) {
      Limbs<6> one_over = {0, 0, 0, 0, 0, u64{1} << 63};
      divide<6>(one_over, j + 2);
      shift_left<6>(one_over, 1);
      coefficient[j] = leading<4, 6>(one_over);
    }
  }

  // ln(n / (n - 1)) = 2 atanh(1 / (2 n - 1)) for 512 < n < 2^22
  static Limbs<6> log_of_step(u64 n) {
    const u64 odd = 2 * n - 1;
    Limbs<6> power = {0, 0, 0, 0, 0, u64{1} << 63};
    divide<6>(power, odd);
    shift_left<6>(power, 2);  // 2 / odd
    Limbs<6> sum = power;
    for (u64 k = 3; power != Limbs<6>{}; k += 2) {
      divide<6>(power, odd * odd);
      Limbs<6> term = power;
      divide<6>(term, k);
      add<6>(sum, term);
    }
    return sum;
  }

  static void store(const Limbs<6>& a, Limbs<4>& top, u64& rest) {
    top = leading<4, 6>(a);
    rest = a[1];
  }
};

const LogTable& log_table() {
  static const LogTable table;
  return table;
}

// integer.fraction with F limbs of fraction
template <int F> struct SignedLog {
  bool negative;
  Limbs<F + 1> value;
};

template <int F> [[gnu::always_inline]] inline Limbs<F + 1> entry(const Limbs<4>& top, u64 rest) {
  if constexpr (F == 4) {
    return {top[0], top[1], top[2], top[3], 0};
  } else {
    return {rest, top[0], top[1], top[2], top[3], 0};
  }
}

// ln of a positive finite number not within 2^-21 of 1, with an absolute error below
// 2^-230 max(1, |exponent| 2^-25) for F = 4, and 2^-294 (the same) for F = 5.
template <int F>
[[gnu::always_inline]] inline SignedLog<F> log_far_from_one(const LogTable& table, const f192& x) {
  constexpr int N = F - 1;  // limbs in the series, whose sum is then shifted down by 40 bits
  const Limbs<3> m = x.limbs();
  const std::size_t i0 = (m[2] >> 56) & 127;
  // v = 1 - 0.m n / 2^9 in 256 bits: n < 2^10 and the product is below 2^9.
  Limbs<4> v = {m[0], m[1], m[2], 0};
  multiply<4>(v, table.n[i0]);
  shift_left<4>(v, 55);
  negate<4>(v);
  // 1 - v' = (1 - v)(1 + a), v' = v - a + a v. v ends in 55, then 40 zero bits: nothing is lost,
  // provided that the shift comes first (v · A may exceed 1).
  const std::size_t i1 = v[3] >> 50;
  Limbs<4> product = v;
  const u64 a1 = table.a[i1];
  shift_right<4>(product, 15);
  multiply<4>(product, a1);
  v[3] -= a1 << 49;
  add<4>(v, product);
  const std::size_t i2 = v[3] >> 43;
  product = v;
  shift_right<4>(product, 21);
  multiply<4>(product, i2);
  v[3] -= static_cast<u64>(i2) << 43;
  add<4>(v, product);

  // v^2 w(v), both factors v shifted up by 20 bits and the product down by 40 again
  constexpr int last = F == 4 ? last_narrow : last_wide;
  const Limbs<N> w = horner<N, series_bits, 0, last, false>(table.coefficient, leading<N, 4>(v));
  Limbs<4> up = v;
  shift_left<4>(up, series_bits);
  const Limbs<N> scaled = leading<N, 4>(up);
  Limbs<F> tail = leading<F, N>(multiply_high<N>(multiply_high<N>(scaled, w), scaled));
  shift_right<F>(tail, 2 * series_bits);

  Limbs<F + 1> minus_log{};  // -ln 0.m
  const Limbs<F> v_padded = leading<F, 4>(v);
  repeat<F>([&](auto i) { minus_log[i] = v_padded[i]; });
  Limbs<F + 1> tail_padded{};
  repeat<F>([&](auto i) { tail_padded[i] = tail[i]; });
  add<F + 1>(minus_log, tail_padded);
  add<F + 1>(minus_log, entry<F>(table.log0[i0], table.rest0[i0]));
  add<F + 1>(minus_log, entry<F>(table.log1[i1], table.rest1[i1]));
  add<F + 1>(minus_log, entry<F>(table.log2[i2], table.rest2[i2]));

  const i64 e = x.exponent();
  Limbs<F + 1> multiple{};
  const Limbs<F> ln2 = leading<F, 5>(ln2_limbs);
  repeat<F>([&](auto i) { multiple[i] = ln2[i]; });
  multiply<F + 1>(multiple, static_cast<u64>(e > 0 ? e : -e));
  if (e <= 0) {
    add<F + 1>(multiple, minus_log);
    return {true, multiple};
  }
  subtract<F + 1>(multiple, minus_log);  // x > 1, far from 1: positive
  return {false, multiple};
}

// w with ln(1 + u) = u - u^2 w for |u| < 2^-21: 1/2 - u/3 + u^2/4 - …
template <int N, int last> inline Limbs<N> series_factor(const LogTable& table, const f192& u) {
  const Limbs<N> v = fraction_of<N>(u);
  return u.negative() ? horner<N, series_bits, 0, last, false>(table.coefficient, v)
                      : horner<N, series_bits, 0, last, true>(table.coefficient, v);
}

f192 log_near_one(const f192& u) {
  const Limbs<3> w = series_factor<3, last_narrow>(log_table(), u);
  return u - u * u * to_f192<3>(false, 0, w);
}

bool is_near_one(const f192& x, f192& u) {
  if (x.exponent() != 0 && x.exponent() != 1) return false;
  u = x - 1;
  return u.exponent() <= near_one_exponent;
}

}  // namespace

f192 log(const f192& x) {
  if (x.is_nan()) return x;
  if (x.is_zero()) return f192::infinity(true);
  if (x.negative()) return f192::nan();
  if (x.is_infinite()) return x;
  f192 u;
  if (is_near_one(x, u)) return log_near_one(u);
  const SignedLog<4> result = log_far_from_one<4>(log_table(), x);
  return to_f192<5>(result.negative, 64, result.value);
}

f192 log1p(const f192& x) {
  if (x.is_nan() || x.is_zero()) return x;
  if (x.exponent() <= near_one_exponent) return log_near_one(x);
  const f192 sum = x + 1;
  if (!(sum > 0) || sum.is_infinite()) return log(sum);
  // What the sum lost, by Knuth's two-sum; it is at most an ulp, so ln(sum + lost) needs one term.
  const f192 back = sum - 1;
  const f192 lost = (1 - (sum - back)) + (x - back);
  return log(sum) + lost / sum;
}

Wide wide_log(const f192& x) {
  f192 u;
  if (is_near_one(x, u)) {
    // u - u^2 w with 320 bits: u^2 = 0.s · 2^(2 exponent), s in [1/4, 1)
    Limbs<5> value = leading<5, 3>(u.limbs());
    const Limbs<4> m = leading<4, 3>(u.limbs());
    const Limbs<4> w = series_factor<4, last_wide>(log_table(), u);
    Limbs<5> correction = leading<5, 4>(multiply_high<4>(multiply_high<4>(m, m), w));
    shift_right_far<5>(correction, static_cast<u64>(-u.exponent()));
    i64 exponent = u.exponent();
    if (!u.negative()) {
      subtract<5>(value, correction);
    } else if (add<5>(value, correction) != 0) {
      shift_right<5>(value, 1);
      value[4] |= u64{1} << 63;
      ++exponent;
    }
    exponent -= normalise<5>(value);
    return {u.negative(), exponent, value};
  }
  SignedLog<5> result = log_far_from_one<5>(log_table(), x);
  const int shift = normalise<6>(result.value);
  return {result.negative, 64 - shift, leading<5, 6>(result.value)};
}

}  // namespace plumbline
