// reference/numeric/f192_kernels.hpp        (used by the f192_*.cpp files only)
//
// What the elementary functions lend each other, in fixed point.
#pragma once

#include "reference/numeric/f192_limbs.hpp"

namespace plumbline {

// integer + 0.fraction, >= 0
struct Fixed {
  limbs::u64 integer;
  limbs::Limbs<4> fraction;
};

// ± 0.fraction · 2^exponent with the top bit set
struct Wide {
  bool negative;
  limbs::i64 exponent;
  limbs::Limbs<5> fraction;
};

// floor(2^320 ln 2)
inline constexpr limbs::Limbs<5> ln2_limbs = {0xe7b876206debac98, 0x8a0d175b8baafa2b,
                                              0x40f343267298b62d, 0xc9e3b39803f2f6af,
                                              0xb17217f7d1cf79ab};

// e^(± y), 188 bits; saturates.
f192 exp_of_fixed(bool negative, const Fixed& y);

// ln x with a relative error below 2^-250, for finite x > 0 other than 1. For pow: a product with
// an exponent of up to 60 bits must still leave 190 bits behind the point.
Wide wide_log(const f192& x);

}  // namespace plumbline
