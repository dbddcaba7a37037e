// reference/numeric/f192_limbs.hpp        (used by the f192_*.cpp files only)
//
// Fixed-point arithmetic on short arrays of 64-bit limbs, little-endian. Limbs<n> stands for an
// integer below 2^(64 n) or, as most functions here read it, for a fraction in [0, 1) with
// 64 n bits. Everything is unrolled at compile time; n is at most 11.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "reference/numeric/f192.hpp"

namespace plumbline::limbs {

using u64 = std::uint64_t;
using i64 = std::int64_t;
__extension__ using u128 = unsigned __int128;
__extension__ using i128 = __int128;

template <int n> using Limbs = std::array<u64, static_cast<std::size_t>(n)>;

constexpr u64 low(u128 x) { return static_cast<u64>(x); }
constexpr u64 high(u128 x) { return static_cast<u64>(x >> 64); }
constexpr u128 wide(u64 top, u64 bottom) { return (u128{top} << 64) | bottom; }

// The high 128 bits of a 256-bit product, short by at most 2 units.
constexpr u128 multiply_high(u128 a, u128 b) {
  const u128 cross = u128{high(u128{high(a)} * low(b))} + high(u128{low(a)} * high(b));
  return u128{high(a)} * high(b) + cross;
}

// f(0), …, f(n - 1) with constant arguments
template <int n, class F> [[gnu::always_inline]] constexpr void repeat(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, static_cast<std::size_t>(i)>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

// The leading m limbs; more than there are get zeros below.
template <int m, int n> [[gnu::always_inline]] constexpr Limbs<m> leading(const Limbs<n>& a) {
  Limbs<m> result{};
  constexpr int common = m < n ? m : n;
  repeat<common>([&](auto i) { result[m - common + i] = a[n - common + i]; });
  return result;
}

template <int n>
[[gnu::always_inline]] constexpr u64 add(Limbs<n>& a, const Limbs<n>& b) {  // returns the carry
  u64 carry = 0;
  repeat<n>([&](auto i) {
    const u128 sum = u128{a[i]} + b[i] + carry;
    a[i] = low(sum);
    carry = high(sum);
  });
  return carry;
}

template <int n>
[[gnu::always_inline]] constexpr u64 subtract(Limbs<n>& a, const Limbs<n>& b) {  // and the borrow
  u64 borrow = 0;
  repeat<n>([&](auto i) {
    const u128 difference = u128{a[i]} - b[i] - borrow;
    a[i] = low(difference);
    borrow = high(difference) & 1;
  });
  return borrow;
}

template <int n> [[gnu::always_inline]] constexpr void negate(Limbs<n>& a) {
  Limbs<n> zero{};
  subtract<n>(zero, a);
  a = zero;
}

template <int n>
[[gnu::always_inline]] constexpr u64 multiply(Limbs<n>& a, u64 factor) {  // returns the overflow
  u64 carry = 0;
  repeat<n>([&](auto i) {
    const u128 product = u128{a[i]} * factor + carry;
    a[i] = low(product);
    carry = high(product);
  });
  return carry;
}

template <int n> constexpr void divide(Limbs<n>& a, u64 divisor) {  // rounds down
  u64 remainder = 0;
  for (auto limb = a.rbegin(); limb != a.rend(); ++limb) {
    const u128 dividend = wide(remainder, *limb);
    *limb = low(dividend / divisor);
    remainder = low(dividend % divisor);
  }
}

// Shifts by 0 … 63 bits; what leaves is dropped.
template <int n> [[gnu::always_inline]] constexpr void shift_left(Limbs<n>& a, int bits) {
  repeat<n - 1>([&](auto i) {
    constexpr std::size_t to = n - 1 - i;
    a[to] = (a[to] << bits) | ((a[to - 1] >> 1) >> (63 - bits));
  });
  a[0] <<= bits;
}

template <int n> [[gnu::always_inline]] constexpr void shift_right(Limbs<n>& a, int bits) {
  repeat<n - 1>([&](auto i) { a[i] = (a[i] >> bits) | ((a[i + 1] << 1) << (63 - bits)); });
  a[n - 1] >>= bits;
}

template <int n> constexpr void shift_right_far(Limbs<n>& a, u64 bits) {  // any distance
  while (bits >= 64) {
    repeat<n - 1>([&](auto i) { a[i] = a[i + 1]; });
    a[n - 1] = 0;
    if (a == Limbs<n>{}) return;
    bits -= 64;
  }
  shift_right<n>(a, static_cast<int>(bits));
}

// Shifts the top bit into place and says by how much; zero stays, and gives 64 n.
template <int n> constexpr int normalise(Limbs<n>& a) {
  int shift = 0;
  while (a[n - 1] == 0 && shift < 64 * n) {
    repeat<n - 1>([&](auto i) {
      constexpr std::size_t to = n - 1 - i;
      a[to] = a[to - 1];
    });
    a[0] = 0;
    shift += 64;
  }
  if (shift == 64 * n) return shift;
  const int zeros = std::countl_zero(a[n - 1]);
  shift_left<n>(a, zeros);
  return shift + zeros;
}

// Product of fractions, rounded down and short by less than n more units of 2^-64 ulp.
template <int n>
[[gnu::always_inline]] constexpr Limbs<n> multiply_high(const Limbs<n>& a, const Limbs<n>& b) {
  Limbs<n> result{};
  u128 column = 0;  // the running column; `carry` is what leaves its 128 bits
  repeat<n - 1>([&](auto i) { column += high(u128{a[i]} * b[n - 2 - i]); });
  repeat<n>([&](auto c) {  // the column of weight n - 1 + c
    u64 carry = 0;
    repeat<n - static_cast<int>(decltype(c)::value)>([&](auto i) {
      const u128 product = u128{a[c + i]} * b[n - 1 - i];
      column += product;
      carry += column < product ? 1 : 0;
    });
    if constexpr (c > 0) result[c - 1] = low(column);
    column = wide(carry, high(column));
  });
  result[n - 1] = low(column);
  return result;
}

// How many limbs coefficient j of a polynomial in s < 2^-bits needs, if its term is multiplied by
// s^j · 2^-head and shall be right to 2^(-64 n - 2).
constexpr int limbs_of_term(int n, int j, int bits, int head) {
  const int spare = (bits * j + head - 2) / 64;
  return n - spare > 1 ? n - spare : 1;
}

// c[0] ± s (c[1] ± s (c[2] ± …)), up to c[last], minus where `alternating`. Precondition: s is
// below 2^-bits, the coefficients fall and every value stays within (0, 1).
// Inner terms use fewer limbs, as many as their weight deserves.
template <int n, int bits, int head, int last, bool alternating, int j = 0>
[[gnu::always_inline]] constexpr Limbs<limbs_of_term(n, j, bits, head)> horner(
    const Limbs<4>* coefficients, const Limbs<n>& s) {
  constexpr int m = limbs_of_term(n, j, bits, head);
  Limbs<m> result = leading<m, 4>(coefficients[j]);
  if constexpr (j < last) {
    constexpr int inner_size = limbs_of_term(n, j + 1, bits, head);
    const Limbs<inner_size> inner =
        horner<n, bits, head, last, alternating, j + 1>(coefficients, s);
    const Limbs<m> term = multiply_high<m>(leading<m, n>(s), leading<m, inner_size>(inner));
    if constexpr (alternating) {
      subtract<m>(result, term);
    } else {
      add<m>(result, term);
    }
  }
  return result;
}

// 0.a · 2^exponent as a number; a need not be normalised. Rounds to nearest.
template <int n> constexpr f192 to_f192(bool negative, i64 exponent, Limbs<n> a) {
  const int shift = normalise<n>(a);
  if (shift == 64 * n) return f192::zero(negative);
  Limbs<3> top = leading<3, n>(a);
  i64 result_exponent = exponent - shift;
  if constexpr (n > 3) {
    const Limbs<3> ulp = {a[n - 4] >> 63, 0, 0};
    if (add<3>(top, ulp) != 0) {
      top[2] = u64{1} << 63;
      ++result_exponent;
    }
  }
  return f192::from_normalised(negative, result_exponent, top);
}

// |x| as a fraction of n limbs, for |x| < 1; what is smaller than 2^(-64 n) is dropped.
template <int n> constexpr Limbs<n> fraction_of(const f192& x) {
  if (x.is_zero()) return {};
  Limbs<n> result = leading<n, 3>(x.limbs());
  shift_right_far<n>(result, static_cast<u64>(-x.exponent()));
  return result;
}

}  // namespace plumbline::limbs
