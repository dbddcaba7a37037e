// The blocked f64 contraction against the longhand: the same sums in the same order, so the same bits, for rows,
// depths and columns that fill no panel, slices included. What it is meant to catch: a dropped tail, a contracted
// multiply-add, another order of summation.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/error.hpp"
#include "reference/linear/contract.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

TEST(Contraction, BlockedHasTheBitsOfTheLonghand) {
  std::uint64_t seed = 0;
  int ragged = 0, exponent = 0;
  for (const std::int64_t rows : {1, 2, 5, 16, 19}) {
    for (const std::int64_t in : {1, 7, 255, 256, 257, 600}) {
      for (const std::int64_t width : {1, 15, 16, 17, 37, 300}) {
        const std::int64_t groups = 1 + static_cast<std::int64_t>(seed % 3);
        const Slice slice = width > 3 ? Slice{1, width - 1} : Slice{0, width};
        const std::int64_t columns = slice[1] - slice[0];
        const auto draw = [&](const char* name, std::int64_t n) {
          return support::Stream(++seed, name).reals(n, support::Contents::bits);
        };
        std::vector<double> x, w;
        for (const double value : draw("x", rows * in))
          x.push_back(std::isfinite(value) ? std::ldexp(std::frexp(value, &exponent), 3) : 1);
        for (const double value : draw("w", in * groups * width))
          w.push_back(std::isfinite(value) ? std::frexp(value, &exponent) : 2);
        const StoredTensor weight = support::f64s({in, groups, width}, w), none;
        std::vector<double> y(static_cast<std::size_t>(rows * groups * columns)),
            longhand(y.size());
        Contraction<f64>(weight, none, slice).apply(rows, x, y);
        for (std::int64_t n = 0; n < rows; ++n) {
          for (std::int64_t g = 0; g < groups; ++g) {
            for (std::int64_t c = 0; c < columns; ++c) {
              double total = 0;
              for (std::int64_t i = 0; i < in; ++i) {
                total += x[static_cast<std::size_t>(n * in + i)] *
                         w[static_cast<std::size_t>((i * groups + g) * width + slice[0] + c)];
              }
              longhand[static_cast<std::size_t>((n * groups + g) * columns + c)] = total;
            }
          }
        }
        ASSERT_EQ(y, longhand) << rows << " rows, " << in << " deep, " << groups << " x "
                               << columns;
        ragged += columns % 16 != 0 && in % 256 != 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(ragged, 50);
}

// Every code, at every place in a group of eight; a code that is no number is named where it stands.
TEST(Contraction, RowsOfBf16AreTheirNumbers) {
  std::vector<std::uint16_t> codes(1 << 16);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  StoredTensor tensor;
  tensor.name = "in.w";
  tensor.data = reinterpret_cast<const std::byte*>(codes.data());
  tensor.dtype = Dtype::bf16;
  tensor.shape = {1, 1 << 16};
  tensor.stride = {1 << 16, 1};
  tensor.present = true;
  const auto fetched = [&](std::int64_t first, std::size_t count) {
    std::vector<double> row(count);
    fetch<double>(tensor, {0}, first, std::span<double>(row));
    return row;
  };
  tensor.nonfinite = NonFinite::allow;
  for (std::size_t first = 0; first < 9; ++first) {
    const std::vector<double> row =
        fetched(static_cast<std::int64_t>(first), codes.size() - first - 3);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double value = decode_bf16(codes[first + i]);
      ASSERT_TRUE(row[i] == value || (row[i] != row[i] && value != value)) << first + i;
      ASSERT_EQ(std::signbit(row[i]), std::signbit(value)) << first + i;
    }
  }
  tensor.nonfinite = NonFinite::error;
  for (const std::int64_t first : {0x7f40, 0x7f60, 0x7f7f, 0x7f80}) {  // infinity is code 0x7f80
    try {
      fetched(first, 0x51);
      FAIL() << first;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("in.w[0, 32640]: found inf"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace plumbline
