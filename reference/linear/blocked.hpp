// reference/linear/blocked.hpp
//
// The f64 path of a contraction, blocked: y[n, c] += Σ_i x[n, i]·W[i, c] on panels of W converted once.
// Guarantees: every sum runs over ascending i with one rounding for the product and one for the sum, nothing
// contracted: the same bits as the longhand, on every instruction set (tests/contraction_test.cpp).
#pragma once
#include <cstddef>

namespace plumbline {

inline constexpr std::size_t panel_columns = 16, panel_depth = 256;
inline constexpr std::size_t most_panels = 16;  // filled from one stretch of a row

// rows ≤ any; x has row stride x_stride, panel is [depth, panel_columns] with zeros in unused columns, y is
// [rows, panel_columns].
void add_product(std::size_t rows, std::size_t depth, const double* x, std::size_t x_stride,
                 const double* panel, double* y);

}  // namespace plumbline
