// tests/f192_testing.hpp
//
// What the tests of f192 share: exact conversion to and from MPFR with 400 bits, a collector of
// worst cases, and arguments chosen to hurt.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <boost/multiprecision/mpfr.hpp>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reference/numeric/f192.hpp"

namespace plumbline::testing {

namespace mp = boost::multiprecision;
using Real = mp::number<mp::mpfr_float_backend<120, mp::allocate_stack>, mp::et_off>;
using u64 = std::uint64_t;
using i64 = std::int64_t;

inline constexpr double infinite_bits = 1e9;

// MPFR's exponents default to 31 bits; it has 62 on request.
inline const bool exponents_are_wide =
    mpfr_set_emin(mpfr_get_emin_min()) == 0 && mpfr_set_emax(mpfr_get_emax_max()) == 0;

inline mpfr_ptr raw(Real& x) { return x.backend().data(); }
inline mpfr_srcptr raw(const Real& x) { return x.backend().data(); }

inline Real exact(const f192& x) {
  const f192::Parts parts = x.parts();
  Real result = 0;
  if (parts.kind == f192::Kind::nan) return std::numeric_limits<Real>::quiet_NaN();
  if (parts.kind == f192::Kind::infinite) mpfr_set_inf(raw(result), 1);
  if (parts.kind == f192::Kind::finite) {
    for (std::size_t i = 3; i-- > 0;) result = result * Real(0x1p64) + Real(parts.limbs[i]);
    mpfr_mul_2si(raw(result), raw(result), parts.exponent - 192, MPFR_RNDN);
  }
  return parts.negative ? Real(-result) : result;
}

inline f192 nearest(const Real& x) {  // finite
  mpfr_t rounded;
  mpfr_init2(rounded, 192);
  mpfr_set(rounded, raw(x), MPFR_RNDN);
  mpz_t integer;
  mpz_init(integer);
  f192::Parts parts;
  if (mpfr_zero_p(rounded) == 0) {
    parts.kind = f192::Kind::finite;
    parts.exponent = mpfr_get_z_2exp(integer, rounded) + 192;
    parts.negative = mpz_sgn(integer) < 0;
    mpz_export(parts.limbs.data(), nullptr, -1, 8, 0, 0, integer);
  }
  mpz_clear(integer);
  mpfr_clear(rounded);
  return f192::from_parts(parts);
}

inline std::string text(const f192& x) {
  if (isnan(x)) return "nan";
  if (isinf(x)) return signbit(x) ? "-inf" : "inf";
  const auto l = x.limbs();
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, "%s0x0.%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "p%" PRId64,
                signbit(x) ? "-" : "", l[2], l[1], l[0], x.parts().exponent);
  return std::string(buffer) + " = " + exact(x).str(12);
}

inline double correct_bits(const f192& got, const Real& right) {
  if (isnan(got) || !isfinite(got)) return 0;
  const Real value = exact(got);
  if (!isfinite(right)) return 0;
  if (value == right) return infinite_bits;
  if (right == 0) return 0;
  const Real error = abs((value - right) / right);
  long exponent = 0;
  const double fraction = mpfr_get_d_2exp(&exponent, raw(error), MPFR_RNDN);
  return -static_cast<double>(exponent) - std::log2(fraction);
}

// |got - right| in units of the last place of `got`
inline double ulps(const f192& got, const Real& right) {
  Real error = abs(exact(got) - right);
  if (error == 0) return 0;
  mpfr_mul_2si(raw(error), raw(error), 192 - got.exponent(), MPFR_RNDN);
  return static_cast<double>(error);
}

// Collects the worst case of one function; its destructor prints and asserts.
class Worst {
 public:
  Worst(std::string name, double demanded) : name_(std::move(name)), demanded_(demanded) {}
  Worst(const Worst&) = delete;
  Worst& operator=(const Worst&) = delete;
  ~Worst() {
    std::printf("  %-28s %9ld arguments, worst %.3f bits at %s\n", name_.c_str(), count_, bits_,
                argument_.c_str());
    EXPECT_GE(bits_, demanded_) << name_ << " at " << argument_;
    EXPECT_GT(count_, 0);
  }
  template <class... Arguments>
  void add(const f192& got, const Real& right, const Arguments&... arguments) {
    ++count_;
    const double bits = correct_bits(got, right);
    if (bits >= bits_) return;
    bits_ = bits;
    argument_.clear();
    ((argument_ += (argument_.empty() ? "" : ", ") + text(arguments)), ...);
  }

 private:
  std::string name_;
  double demanded_;
  double bits_ = infinite_bits;
  long count_ = 0;
  std::string argument_;
};

// SplitMix64 (Steele, Lea, Flood 2014): a bijection of a counter, so every number is reproducible.
class Random {
 public:
  explicit Random(u64 seed) : state_(seed) {}
  u64 bits() {
    u64 z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  i64 between(i64 low, i64 high) {
    return low + static_cast<i64>(bits() % static_cast<u64>(high - low + 1));
  }
  // Limbs are random, all zeros, all ones, or a lone bit: carries and cancellations of every
  // length.
  u64 limb() {
    switch (bits() & 7) {
      case 0: return 0;
      case 1: return ~u64{0};
      case 2: return u64{1} << (bits() & 63);
      case 3: return ~(u64{1} << (bits() & 63));
      default: return bits();
    }
  }
  f192 number(i64 low, i64 high) {  // with an exponent in [low, high]
    // One draw a statement: the order in which arguments are evaluated differs by compiler.
    const bool negative = (bits() & 1) != 0;
    const i64 exponent = between(low, high);
    const u64 top = limb() | (u64{1} << 63);
    const u64 middle = limb();
    const u64 bottom = limb();
    return f192::from_normalised(negative, exponent, {bottom, middle, top});
  }

 private:
  u64 state_;
};

inline f192 power_of_two(i64 exponent) { return ldexp(f192(1), exponent); }

inline void around(std::vector<f192>& list, const Real& center, int last, bool both_signs = true) {
  for (int j = 1; j <= last; j += j < 16 ? 1 : 7) {
    for (const int sign : {-1, 1}) {
      const Real moved = center + Real(sign) * ldexp(Real(1), -j);
      if (moved == 0) continue;
      list.push_back(nearest(moved));
      if (both_signs) list.push_back(-list.back());
    }
  }
  if (center != 0) list.push_back(nearest(center));
  if (center != 0 && both_signs) list.push_back(-list.back());
}

inline Real ln2() {
  Real result;
  mpfr_const_log2(raw(result), MPFR_RNDN);
  return result;
}

inline Real pi() {
  Real result;
  mpfr_const_pi(raw(result), MPFR_RNDN);
  return result;
}

template <class F> Real by_mpfr(F function, const Real& x) {
  Real result;
  function(raw(result), raw(x), MPFR_RNDN);
  return result;
}

}  // namespace plumbline::testing
