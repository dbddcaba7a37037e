// reference/numeric/f192_trig.cpp
//
// sin, cos and the constants. Arguments are reduced modulo pi/2 after M. H. Payne and R. N. Hanek
// (SIGNUM Newsletter 18, 1983): x · 2/pi modulo 4, from just those bits of 2/pi that matter,
// so that the reduced argument keeps its full relative precision. Then, with i = floor(64 r),
//   sin(i/64 + d) = sin(i/64) cos d + cos(i/64) sin d,  d < 2^-6,
// all terms positive, and likewise for the cosine.
#include "reference/numeric/f192_kernels.hpp"

namespace plumbline {

using namespace limbs;

namespace {

constexpr std::size_t nodes = 51;    // floor(64 · pi/4) = 50
constexpr int square_bits = 12;      // d^2 < 2^-12
constexpr int last_coefficient = 9;  // d^22 / 22! < 2^-202

// 256 zero bits, then the first 1536 bits of 2/pi = 0.a2f9836e…; most significant limb first
constexpr std::array<u64, 28> two_over_pi = {
    0x0000000000000000, 0x0000000000000000, 0x0000000000000000, 0x0000000000000000,
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
    0xa9e391615ee61b08, 0x6599855f14a06840, 0x8dffd8804d732731, 0x06061556ca73a8c9};

constexpr i64 largest_exponent = 1024;  // of an argument whose bits of 2/pi are all in the table

constexpr std::array<u64, 3> pi_fraction = {0x29024e088a67cc74, 0xc4c6628b80dc1cd1,
                                            0xc90fdaa22168c234};

struct TrigTable {
  f192 sine[nodes], cosine[nodes];  // of i / 64
  // sin d = d (1 - d^2 S(d^2)), S = 1/3! - z/5! + …; cos d = 1 - d^2 C(d^2), C = 1/2! - z/4! + …
  Limbs<4> sine_coefficient[last_coefficient + 1], cosine_coefficient[last_coefficient + 1];

  TrigTable() {
    Limbs<6> factorial = {0, 0, 0, 0, 0, u64{1} << 63};  // 1 / 2!
    for (std::size_t j = 0; j <= last_coefficient; ++j) {
      cosine_coefficient[j] = leading<4, 6>(factorial);
      divide<6>(factorial, 2 * j + 3);
      sine_coefficient[j] = leading<4, 6>(factorial);
      divide<6>(factorial, 2 * j + 4);
    }
    for (std::size_t i = 0; i < nodes; ++i) {
      sine[i] = series(i, 1);
      cosine[i] = series(i, 0);
    }
  }

  // x^first / first! - x^(first + 2) / (first + 2)! + … at x = i / 64 < 1, with 384 bits
  static f192 series(u64 i, u64 first) {
    Limbs<6> sum{};
    Limbs<6> term = {0, 0, 0, 0, 0, first == 1 ? i << 58 : u64{1} << 63};
    if (first == 0) {  // half the series, 1 being no fraction
      if (i == 0) return 1;
    }
    bool subtracted = false;
    for (u64 n = first; term != Limbs<6>{}; n += 2) {
      if (subtracted) {
        subtract<6>(sum, term);
      } else {
        add<6>(sum, term);
      }
      subtracted = !subtracted;
      shift_right<6>(term, 12);
      multiply<6>(term, i * i);
      divide<6>(term, (n + 1) * (n + 2));
    }
    return to_f192<6>(false, first == 1 ? 0 : 1, sum);
  }
};

const TrigTable& trig_table() {
  static const TrigTable table;
  return table;
}

// |x| = quadrant · pi/2 ± r with r in [0, pi/4]
struct Reduced {
  unsigned quadrant;
  bool negative;
  f192 r;
};

Reduced reduce(const f192& x) {
  if (x.exponent() < 0) return {0, false, abs(x)};  // below 1/2 < pi/4
  // |x| = M · 2^(exponent - 192) with M < 2^192 whole. Bits of 2/pi of weight above
  // 2^(194 - exponent) yield multiples of 4; the 640 bits that follow yield all of
  // M · W · 2^-638 modulo 4 but for 2^-444. A number with 192 bits and an exponent up to 1024 comes
  // no closer to a multiple of pi/2 than about 2^-205.
  const std::size_t offset = static_cast<std::size_t>(x.exponent() + 62);  // 256 - 194
  Limbs<11> window{};
  for (std::size_t i = 0; i < 11; ++i) {
    const std::size_t from = offset / 64 + i;
    window[10 - i] = from < two_over_pi.size() ? two_over_pi[from] : 0;
  }
  shift_left<11>(window, static_cast<int>(offset % 64));
  const Limbs<10> w = leading<10, 11>(window);
  const Limbs<3> m = x.limbs();
  Limbs<10> product{};
  repeat<3>([&](auto i) {
    Limbs<10> row = w;
    multiply<10>(row, m[i]);
    Limbs<10> shifted{};
    repeat<10 - static_cast<int>(decltype(i)::value)>([&](auto j) { shifted[j + i] = row[j]; });
    add<10>(product, shifted);
  });
  unsigned quadrant = static_cast<unsigned>(product[9] >> 62);
  shift_left<10>(product, 2);
  const bool past_half = (product[9] >> 63) != 0;
  if (past_half) {
    negate<10>(product);
    quadrant = (quadrant + 1) & 3;
  }
  return {quadrant, past_half, to_f192<10>(false, 0, product) * ldexp(pi_f192(), -1)};
}

struct Split {
  std::size_t i;
  f192 sine, cosine;  // of r - i / 64
};

Split split(const TrigTable& table, const f192& r) {
  const std::size_t i = static_cast<std::size_t>(fraction_of<1>(r)[0] >> 58);
  const f192 d = r - ldexp(f192(i), -6);
  const f192 square = d * d;
  const Limbs<3> z = fraction_of<3>(square);
  const Limbs<3> s =
      horner<3, square_bits, square_bits, last_coefficient, true>(table.sine_coefficient, z);
  const Limbs<3> c =
      horner<3, square_bits, square_bits, last_coefficient, true>(table.cosine_coefficient, z);
  return {i, d - d * (square * to_f192<3>(false, 0, s)), 1 - square * to_f192<3>(false, 0, c)};
}

f192 sine_of_reduced(const f192& r) {
  const TrigTable& table = trig_table();
  const Split d = split(table, r);
  return d.i == 0 ? d.sine : table.sine[d.i] * d.cosine + table.cosine[d.i] * d.sine;
}

f192 cosine_of_reduced(const f192& r) {
  const TrigTable& table = trig_table();
  const Split d = split(table, r);
  return d.i == 0 ? d.cosine : table.cosine[d.i] * d.cosine - table.sine[d.i] * d.sine;
}

}  // namespace

f192 sin(const f192& x) {
  if (x.is_nan() || x.is_zero()) return x;
  if (x.exponent() > largest_exponent) return f192::nan();
  const Reduced reduced = reduce(x);
  const bool odd = (reduced.quadrant & 1) != 0;
  const f192 size = odd ? cosine_of_reduced(reduced.r) : sine_of_reduced(reduced.r);
  const bool flip = (reduced.quadrant >= 2) != (!odd && reduced.negative);
  return flip != x.negative() ? -size : size;
}

f192 cos(const f192& x) {
  if (x.is_nan()) return x;
  if (x.is_zero()) return 1;
  if (x.exponent() > largest_exponent) return f192::nan();
  const Reduced reduced = reduce(x);
  const bool odd = (reduced.quadrant & 1) != 0;
  const f192 size = odd ? sine_of_reduced(reduced.r) : cosine_of_reduced(reduced.r);
  // cos(pi/2 ± r) = ∓ sin r, cos(pi + r) = -cos r
  const bool negative =
      (reduced.quadrant == 1 || reduced.quadrant == 2) != (odd && reduced.negative);
  return negative ? -size : size;
}

f192 pi_f192() { return f192::from_normalised(false, 2, pi_fraction); }

f192 ln2_f192() {
  // rounded up: the fourth limb of ln 2 begins with a one
  return to_f192<5>(false, 0, ln2_limbs);
}

}  // namespace plumbline
