// reference/numeric/bounded_sums.hpp
//
// The sums that the rules of bounds are made of.
#pragma once
#include <cmath>

namespace plumbline {

// 0·∞ is 0: what has no weight has no error.
inline double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }
inline double square(double x) { return x * x; }
// Not less than exp(x) − 1.
inline double growth(double x) { return x < 0x1p-10 ? x + x * x : std::expm1(x); }

}  // namespace plumbline
