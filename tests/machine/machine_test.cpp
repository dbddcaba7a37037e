// The ordinary tiled kernel on the host: right values in every schedule and arithmetic, and stable.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/machine/product.hpp"

namespace plumbline::device::host {
namespace {

struct ProductCase {
  static constexpr int rows = 70, columns = 100, depth = 88;
  std::vector<bf16> a, b;
  std::vector<float> c;
  float total = 0;

  ProductCase() : a(rows * depth), b(columns * depth), c(rows * columns) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = to_bf16(static_cast<float>(i * 5 % 17) - 7.f);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = to_bf16(static_cast<float>(i * 3 % 13) - 5.f);
  }
  std::string run(Options options) {
    Stream stream(std::move(options));
    total = 0;
    stream.input("a", a.data(), a.size());
    stream.input("b", b.data(), b.size());
    stream.output("c", c.data(), c.size());
    stream.accumulator("total", &total, 1);
    launch<Product<64>>(stream, {(rows + 31) / 32, (columns + 63) / 64},
                        {{a.data(), {rows, depth}},
                         {b.data(), {columns, depth}},
                         {c.data(), {rows, columns}},
                         {&total, {1}}});
    return stream.finish();
  }
  float exact(int i, int j) const {
    float sum = 0;
    for (int k = 0; k < depth; ++k)
      sum += to_float(a[static_cast<std::size_t>(i * depth + k)]) *
             to_float(b[static_cast<std::size_t>(j * depth + k)]);
    return sum;
  }
};

TEST(Product, IsExactOnIntegers) {
  ProductCase p;
  for (const bool late : {false, true})
    for (const Products model : {Products::sequential, Products::once, Products::truncated})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        ASSERT_EQ(p.run({.seed = seed, .late = late, .products = model}), "");
        float total = 0;
        for (int i = 0; i < ProductCase::rows; ++i)
          for (int j = 0; j < ProductCase::columns; ++j) {
            ASSERT_EQ(p.c[static_cast<std::size_t>(i * ProductCase::columns + j)], p.exact(i, j));
            total += p.exact(i, j);
          }
        EXPECT_EQ(p.total, total);
      }
}

}  // namespace
}  // namespace plumbline::device::host
