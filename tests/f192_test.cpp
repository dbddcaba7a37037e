// tests/f192_test.cpp
//
// f192 against MPFR with 400 bits, and against double. Arguments are structured, not only random: a
// reduction is wrong beside its seams (k ln 2 ± 2^-j, multiples of pi/2, table edges) long before
// random numbers notice. Every test prints the fewest correct bits and the argument that gave them.
#include <algorithm>
#include <type_traits>

#include "tests/f192_testing.hpp"

namespace plumbline {
namespace {

using namespace testing;  // of f192_testing.hpp

static_assert(std::is_trivially_copyable_v<f192>);
static_assert(std::is_convertible_v<int, f192> && !std::is_convertible_v<f192, double>);
static_assert(std::numeric_limits<f192>::is_specialized && !std::numeric_limits<f192>::is_iec559);

TEST(F192, ConvertsIntegersAndDoublesExactly) {
  ASSERT_TRUE(exponents_are_wide);
  EXPECT_EQ(exact(f192()), 0);
  for (const i64 n : {i64{0}, i64{1}, i64{-1}, i64{255}, std::numeric_limits<i64>::max(),
                      std::numeric_limits<i64>::min()}) {
    EXPECT_EQ(exact(f192(n)), Real(n));
    EXPECT_EQ(static_cast<i64>(f192(n)), n);
  }
  EXPECT_EQ(exact(f192(~u64{0})), Real(~u64{0}));
  EXPECT_EQ(static_cast<i64>(f192(-3.75)), -3);
  EXPECT_EQ(static_cast<i64>(f192(1e300)), std::numeric_limits<i64>::max());
  Random random(2);
  std::vector<double> doubles = {
      0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1.0, -0.1};
  for (int i = 0; i < 20000; ++i) {
    doubles.push_back(std::bit_cast<double>(random.bits()));
    doubles.push_back(std::bit_cast<double>(random.bits() >> random.between(1, 63)));  // subnormal
  }
  for (const double x : doubles) {
    if (std::isnan(x)) {
      EXPECT_TRUE(isnan(f192(x)));
      EXPECT_TRUE(std::isnan(static_cast<double>(f192(x))));
    } else {
      EXPECT_EQ(std::bit_cast<u64>(static_cast<double>(f192(x))), std::bit_cast<u64>(x)) << x;
      EXPECT_EQ(exact(f192(x)), Real(x));
    }
  }
}

TEST(F192, RoundsToDoubleAndFloatOnce) {
  long checked = 0, ties = 0;
  const auto check = [&](const f192& x) {
    const Real r = exact(x);
    ++checked;
    ASSERT_EQ(std::bit_cast<u64>(static_cast<double>(x)),
              std::bit_cast<u64>(mpfr_get_d(raw(r), MPFR_RNDN)))
        << text(x);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(x)),
              std::bit_cast<std::uint32_t>(mpfr_get_flt(raw(r), MPFR_RNDN)))
        << text(x);
  };
  Random random(3);
  std::vector<i64> exponents;
  for (i64 e = -1080; e <= -1016; ++e) exponents.push_back(e);
  for (i64 e = -155; e <= -120; ++e) exponents.push_back(e);
  for (const i64 e : {-500, -1, 0, 1, 2, 100, 126, 127, 128, 129, 130, 1022, 1023, 1024, 1025}) {
    exponents.push_back(e);
  }
  for (const i64 exponent : exponents) {
    for (int bit = 0; bit < 64; ++bit) {  // a tie or its neighbours at every place of the top limb
      const u64 half = u64{1} << bit;
      const u64 keep = bit == 63 ? 0 : ~((half << 1) - 1);
      for (const u64 pattern : {u64{0}, ~u64{0}, random.bits(), random.bits()}) {
        const u64 top = (pattern & keep) | half | (u64{1} << 63);
        for (const int sign : {0, 1}) {
          ++ties;
          check(f192::from_normalised(sign != 0, exponent, {0, 0, top}));
          check(f192::from_normalised(sign != 0, exponent, {1, 0, top}));
          check(f192::from_normalised(sign != 0, exponent, {0, 1, top}));
          check(f192::from_normalised(sign != 0, exponent, {~u64{0}, ~u64{0}, top - 1}) +
                f192::zero(false));
        }
      }
    }
  }
  check(power_of_two(100000));
  check(-power_of_two(-100000));
  std::printf("  %ld conversions, %ld of them ties\n", checked, ties);
}

TEST(F192, AddsSubtractsMultipliesDivides) {
  Worst add("a + b", 191.99), subtract("a - b", 191.99), multiply("a * b", 191.99);
  Worst divide("a / b", 191.99);
  Random random(4);
  double worst_ulps = 0;
  for (int i = 0; i < 60000; ++i) {
    const i64 apart = i % 3 == 0 ? 1 : i % 3 == 1 ? 70 : 400;
    f192 a = random.number(0, apart), b = random.number(0, apart);
    if (i % 16 == 5) {  // a + b cancels all but the last bits
      const f192 rest = random.number(0, 0);
      b = -a + ldexp(rest, a.exponent() - random.between(0, 195));
    }
    if (i % 16 == 7) a = b;
    if (i % 64 == 9) b = random.bits() & 255;
    const Real x = exact(a), y = exact(b);
    add.add(a + b, x + y, a, b);
    subtract.add(a - b, x - y, a, b);
    multiply.add(a * b, x * y, a, b);
    worst_ulps = std::max({worst_ulps, ulps(a + b, x + y), ulps(a - b, x - y), ulps(a * b, x * y)});
    if (b == 0) continue;
    divide.add(a / b, x / y, a, b);
    worst_ulps = std::max(worst_ulps, ulps(a / b, x / y));
  }
  std::printf("  all four: within %.6f ulp\n", worst_ulps);
  EXPECT_LT(worst_ulps, 0.501);
}

TEST(F192, ExactResultsAreExact) {
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    const f192 a = static_cast<i64>(random.bits()), b = static_cast<i64>(random.bits() | 1);
    const f192 product = a * b;
    ASSERT_EQ(exact(product), exact(a) * exact(b));
    ASSERT_EQ(product / b, a);
    ASSERT_EQ(sqrt(b * b), abs(b));
    ASSERT_EQ(a + b - a, b);
    ASSERT_EQ(ldexp(a, 60) + b - b, ldexp(a, 60));
  }
}

TEST(F192, SquareRoot) {
  Worst worst("sqrt", 191.99);
  Random random(6);
  for (int i = 0; i < 40000; ++i) {
    const f192 x = abs(random.number(-5, 6));
    const Real right = by_mpfr(mpfr_sqrt, exact(x));
    worst.add(sqrt(x), right, x);
    ASSERT_LT(ulps(sqrt(x), right), 0.501) << text(x);
  }
  for (int j = 1; j < 192; ++j) {  // beside 1/4 and 1, where the seed meets its limits
    for (const f192& x : {1 + power_of_two(-j), 1 - power_of_two(-j)}) {
      worst.add(sqrt(x), by_mpfr(mpfr_sqrt, exact(x)), x);
      worst.add(sqrt(ldexp(x, -1)), by_mpfr(mpfr_sqrt, exact(ldexp(x, -1))), x);
      worst.add(1 / x, 1 / exact(x), x);
    }
  }
}

TEST(F192, SpecialValuesAndComparisonsLikeDouble) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto same = [](const f192& a, double b) {
    const double x = static_cast<double>(a);
    return std::isnan(b) ? std::isnan(x) : std::bit_cast<u64>(x) == std::bit_cast<u64>(b);
  };
  const std::vector<double> values = {0.0, -0.0, 1, -1, 0.5, 2, -2, 3, -3, 2.5, inf, -inf, nan};
  for (const double a : values) {
    for (const double b : values) {
      const f192 x = a, y = b;
      EXPECT_TRUE(same(x + y, a + b)) << a << " + " << b;
      EXPECT_TRUE(same(x - y, a - b)) << a << " - " << b;
      EXPECT_TRUE(same(x * y, a * b)) << a << " * " << b;
      EXPECT_TRUE(same(x / y, a / b)) << a << " / " << b;
      EXPECT_EQ(x == y, a == b) << a << ", " << b;
      EXPECT_EQ(x != y, a != b) << a << ", " << b;
      EXPECT_EQ(x < y, a < b) << a << ", " << b;
      EXPECT_EQ(x <= y, a <= b) << a << ", " << b;
      EXPECT_EQ(x > y, a > b) << a << ", " << b;
      EXPECT_EQ(x >= y, a >= b) << a << ", " << b;
      const double power = std::pow(a, b);
      EXPECT_TRUE(same(pow(x, y), power) ||
                  std::abs(static_cast<double>(pow(x, y)) / power - 1) < 1e-15)
          << a << " ^ " << b;
    }
    const f192 x = a;
    EXPECT_TRUE(same(-x, -a) && same(abs(x), std::abs(a)) && same(sqrt(x), std::sqrt(a))) << a;
    EXPECT_TRUE(same(exp(x), std::exp(a)) || std::isfinite(std::exp(a))) << a;
    EXPECT_TRUE(same(log(x), std::log(a)) || std::isfinite(std::log(a))) << a;
    EXPECT_TRUE(same(expm1(x), std::expm1(a)) || std::isfinite(std::expm1(a))) << a;
    EXPECT_TRUE(same(log1p(x), std::log1p(a)) || std::isfinite(std::log1p(a))) << a;
    EXPECT_TRUE(same(sin(x), std::sin(a)) || std::isfinite(std::sin(a))) << a;
    EXPECT_TRUE(same(cos(x), std::cos(a)) || std::isfinite(std::cos(a))) << a;
    EXPECT_TRUE(same(floor(x), std::floor(a)) && same(ceil(x), std::ceil(a))) << a;
  }
  for (const double zero : {0.0, -0.0}) {
    EXPECT_TRUE(same(exp(f192(zero)), 1) && same(cos(f192(zero)), 1));
    EXPECT_TRUE(same(expm1(f192(zero)), zero) && same(log1p(f192(zero)), zero));
    EXPECT_TRUE(same(sin(f192(zero)), zero) && same(log(f192(zero)), -inf));
  }
  EXPECT_TRUE(log(f192(1)) == 0 && exp(f192(-1e300)) == 0 && isinf(exp(f192(1e300))));
}

TEST(F192, SaturatesAtTheEndsOfTheExponent) {
  using limits = std::numeric_limits<f192>;
  const f192 largest = limits::max(), smallest = limits::min();
  const i64 far = std::numeric_limits<i64>::max(), near = std::numeric_limits<i64>::min();
  EXPECT_TRUE(isinf(largest * 2) && isinf(largest + largest) && isinf(largest / smallest));
  EXPECT_TRUE(isinf(largest * largest) && smallest * smallest == 0 && smallest / largest == 0);
  EXPECT_TRUE(smallest / 2 == 0 && smallest * 1 == smallest && largest * 1 == largest);
  EXPECT_TRUE(largest - largest == 0 && smallest - smallest == 0 && largest + 1 == largest);
  EXPECT_TRUE(smallest * 3 - smallest == smallest * 2 && smallest * 3 - smallest * 2 == smallest);
  EXPECT_TRUE(smallest + 0 == smallest && largest / largest == 1 && sqrt(largest) > 1);
  EXPECT_EQ(largest / 2 + largest / 2, largest);
  EXPECT_TRUE(smallest * f192(1.5) - smallest == 0);  // below the smallest number
  EXPECT_TRUE(signbit(-smallest * smallest) && signbit(ldexp(f192(-1), near)));
  EXPECT_TRUE(isinf(ldexp(f192(1), far)) && ldexp(f192(1), near) == 0);
  EXPECT_TRUE(isinf(ldexp(smallest, far)) && ldexp(largest, near) == 0);
  EXPECT_EQ(ldexp(ldexp(f192(3), 1l << 59), -(1l << 59)), 3);
  EXPECT_TRUE(ldexp(f192(0), far) == 0 && isinf(ldexp(limits::infinity(), near)));
  const f192 top = ln2_f192() * f192::max_exponent;  // the logarithm of about the largest number
  EXPECT_TRUE(isfinite(exp(top - 4)) && isinf(exp(top + 4)));
  EXPECT_TRUE(exp(4 - top) > 0 && exp(-4 - top) == 0);
  EXPECT_TRUE(isinf(exp(ldexp(f192(1), 60))) && exp(-ldexp(f192(1), 60)) == 0);
  EXPECT_TRUE(isinf(pow(largest, largest)) && pow(largest, -largest) == 0);
  EXPECT_TRUE(f192(1) + limits::epsilon() > 1 && f192(1) + limits::epsilon() / 4 == 1);
  EXPECT_TRUE(limits::lowest() < -largest / 2 && limits::infinity() > largest);
  EXPECT_TRUE(isnan(limits::quiet_NaN()));
  f192::Parts parts;
  parts.kind = f192::Kind::finite;
  parts.limbs = {5, 0, 0};
  parts.exponent = 192;
  EXPECT_EQ(f192::from_parts(parts), 5);
  parts.exponent = near;
  EXPECT_EQ(f192::from_parts(parts), 0);
}

TEST(F192, FloorCeilTrunc) {
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    const f192 x = random.number(-3, 200);
    ASSERT_EQ(exact(trunc(x)), trunc(exact(x))) << text(x);
    ASSERT_EQ(exact(floor(x)), floor(exact(x))) << text(x);
    ASSERT_EQ(exact(ceil(x)), ceil(exact(x))) << text(x);
  }
}

std::vector<f192> exp_arguments() {
  std::vector<f192> list;
  for (const i64 k : {i64{0}, i64{1}, i64{2}, i64{3}, i64{7}, i64{64}, i64{1024}, i64{1} << 20,
                      (i64{1} << 40) + 1, (i64{1} << 58) + 3}) {
    around(list, Real(k) * ln2(), 250);
  }
  for (int i = 0; i < 90; ++i) {  // edges of the tables, and just below them
    for (const int bits : {7, 14, 21}) {
      const f192 edge = ldexp(f192(i), -bits);
      for (const int tiny : {-22, -43, -64, -128, -190}) {
        list.push_back(edge + power_of_two(tiny));
        list.push_back(edge - power_of_two(tiny));
        list.push_back(-edge + power_of_two(tiny));
      }
    }
  }
  for (const double x :
       {709.782712893384, 709.7827128933841, -708.3964185322641, -745.1332191019411,
        -745.1332191019412, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300}) {
    list.push_back(x);
  }
  Random random(1);
  for (int i = 0; i < 6000; ++i) list.push_back(random.number(-210, 8));
  for (int i = 0; i < 300; ++i) list.push_back(random.number(9, 58));
  return list;
}

TEST(F192, Constants) {
  EXPECT_EQ(pi_f192(), nearest(pi()));
  EXPECT_EQ(ln2_f192(), nearest(ln2()));
}

TEST(F192, Exponential) {
  Worst worst("exp", 180), minus_one("expm1", 180);
  for (const f192& x : exp_arguments()) {
    const Real r = exact(x);
    worst.add(exp(x), by_mpfr(mpfr_exp, r), x);
    minus_one.add(expm1(x), by_mpfr(mpfr_expm1, r), x);
  }
  Random random(8);
  for (int j = -2000; j < 2; ++j) {
    const f192 x = random.number(j, j);
    minus_one.add(expm1(x), by_mpfr(mpfr_expm1, exact(x)), x);
  }
}

TEST(F192, Logarithm) {
  std::vector<f192> list;
  around(list, 1, 191, false);
  for (int i = 128; i <= 256; ++i) around(list, ldexp(Real(i), -8), 190, false);
  for (int i = 0; i < 200; ++i) {  // edges of the inner tables: 1 - v = 1 / ((1 + a1)(1 + a2))
    around(list, ldexp(Real(16384 - i), -14), 190, false);
    around(list, ldexp(Real((1 << 21) - i), -21), 190, false);
    around(list, 1 + ldexp(Real(i), -21), 190, false);
  }
  Random random(9);
  for (int i = 0; i < 10000; ++i) list.push_back(abs(random.number(-3, 3)));
  for (int i = 0; i < 2000; ++i) list.push_back(abs(random.number(-1080, 1030)));
  for (int i = 0; i < 200; ++i) list.push_back(abs(random.number(-(1l << 59), 1l << 59)));
  list.push_back(5e-324);
  list.push_back(1.7976931348623157e308);
  Worst worst("log", 180);
  for (const f192& x : list) worst.add(log(x), by_mpfr(mpfr_log, exact(x)), x);

  Worst plus_one("log1p", 180);
  for (std::size_t i = 0; i < list.size(); i += 3) {
    const f192& x = list[i];
    plus_one.add(log1p(x), by_mpfr(mpfr_log1p, exact(x)), x);
    if (x < 1) plus_one.add(log1p(-x), by_mpfr(mpfr_log1p, exact(-x)), -x);
    const f192 less = x - 1;
    if (less > -1) plus_one.add(log1p(less), by_mpfr(mpfr_log1p, exact(less)), less);
  }
  for (int j = -2000; j < 0; ++j) {
    const f192 x = random.number(j, j);
    plus_one.add(log1p(x), by_mpfr(mpfr_log1p, exact(x)), x);
  }
}

TEST(F192, Power) {
  Worst moderate("pow, moderate result", 180), extreme("pow, extreme result", 180);
  Random random(10);
  const auto check = [](Worst& worst, const f192& x, const f192& y) {
    const Real a = exact(x), b = exact(y);
    Real right;
    mpfr_pow(raw(right), raw(a), raw(b), MPFR_RNDN);
    worst.add(pow(x, y), right, x, y);
  };
  for (int i = 0; i < 3000; ++i) {  // one draw a statement, see Random::number
    const f192 any = random.number(-3, 20), small = random.number(-3, 3);
    const f192 exponent = random.number(-8, 5);
    const i64 base = random.between(2, 200), whole = random.between(-20, 20);
    check(moderate, abs(any), exponent);
    check(moderate, 10000, ldexp(f192(-random.between(0, 127)), -7));
    check(moderate, small, whole);
    check(moderate, base, whole);
  }
  for (int i = 0; i < 500; ++i) {  // results with exponents up to 2^59
    const f192 base = abs(random.number(-3, 3)), exponent = random.number(40, 56);
    check(extreme, base, exponent);
    const i64 j = random.between(2, 190);  // and 1 ± tiny to the power of something vast
    const f192 beside_one = 1 + random.number(-j, -j), vast = random.number(0, j + 55);
    if (beside_one != 1) check(extreme, beside_one, vast);
  }
}

TEST(F192, SineAndCosine) {
  std::vector<f192> list;
  Random random(11);
  for (const i64 k : {0, 1, 2, 3, 4, 5, 100, 101, 102, 103}) {
    around(list, Real(k) * pi() / 2, 190);
    around(list, Real(k) * pi() / 4, 190);
  }
  for (int i = 0; i < 60; ++i) around(list, ldexp(Real(i), -6), 190);
  for (int i = 0; i < 2000; ++i) {  // the nearest numbers to multiples of pi/2, up to 2^1000
    const Real k = floor(ldexp(exact(abs(random.number(0, 0))), static_cast<int>(i / 2)));
    if (k > 0) list.push_back(nearest(k * pi() / 2));
  }
  for (int i = 0; i < 5000; ++i) list.push_back(random.number(-200, 64));
  for (int i = 0; i < 2000; ++i) list.push_back(random.number(64, 1024));
  list.push_back(5e-324);
  list.push_back(1.7976931348623157e308);
  Worst sine("sin", 180), cosine("cos", 180);
  for (const f192& x : list) {
    const Real r = exact(x);
    sine.add(sin(x), by_mpfr(mpfr_sin, r), x);
    cosine.add(cos(x), by_mpfr(mpfr_cos, r), x);
  }
  EXPECT_TRUE(isnan(sin(power_of_two(1024))) && isnan(cos(-power_of_two(5000))));
}

// The same bits from every compiler, optimisation level and C library: this number is the witness.
TEST(F192, BitsAreAlwaysTheSame) {
  u64 hash = 0xcbf29ce484222325;  // FNV-1a over words
  const auto absorb = [&hash](const f192& x) {
    const f192::Parts parts = x.parts();
    for (const u64 word : {parts.limbs[0], parts.limbs[1], parts.limbs[2],
                           static_cast<u64>(parts.exponent), u64{parts.negative}}) {
      hash = (hash ^ word) * 0x100000001b3;
    }
  };
  Random random(12);
  for (int i = 0; i < 5000; ++i) {
    const f192 a = random.number(-60, 8), b = random.number(-60, 8);
    for (const f192& x : {a + b, a - b, a * b, a / b, sqrt(abs(a)), exp(a), expm1(a), log(abs(a)),
                          log1p(abs(a)), pow(abs(a), b), sin(a), cos(a)}) {
      absorb(x);
    }
  }
  EXPECT_EQ(hash, 6993205400561353356u);
}

}  // namespace
}  // namespace plumbline
