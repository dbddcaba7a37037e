// tests/machine/kernels_testing.hpp: small cases of the three sample kernels, whose results are
// exact in every arithmetic, because all numbers are small integers.
#pragma once
#include <vector>

#include "tests/machine/gather90.hpp"
#include "tests/machine/product.hpp"
#include "tests/machine/product90.hpp"

namespace plumbline::device::host {

inline std::vector<bf16> small_integers(std::size_t count, std::size_t step, std::size_t range) {
  std::vector<bf16> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = to_bf16(static_cast<float>(i * step % 101 % range) - static_cast<float>(range / 2));
  return out;
}
inline float at(const std::vector<bf16>& x, int i) {
  return to_float(x[static_cast<std::size_t>(i)]);
}

// Each has run(stream) -> what is wrong; the values count only when nothing else is.
struct ProductCase {
  static constexpr int rows = 70, columns = 100, depth = 88;
  std::vector<bf16> a = small_integers(rows * depth, 5, 7),
                    b = small_integers(columns * depth, 3, 5);
  std::vector<float> c = std::vector<float>(rows * columns);
  float total = 0;

  std::string run(Stream& stream) {
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
    if (!stream.finish().empty()) return stream.error();
    float sum = 0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        float exact = 0;
        for (int k = 0; k < depth; ++k) exact += at(a, i * depth + k) * at(b, j * depth + k);
        if (c[static_cast<std::size_t>(i * columns + j)] != exact) return "VALUES of c";
        sum += exact;
      }
    return total == sum ? "" : "VALUES of total";
  }
};

struct Product90Case {
  static constexpr int depth = 320;
  std::vector<bf16> a = small_integers(64 * depth, 5, 3), b = small_integers(64 * depth, 3, 3);
  std::vector<bf16> c = std::vector<bf16>(64 * 64);

  std::string run(Stream& stream) {
    stream.input("a", a.data(), a.size());
    stream.input("b", b.data(), b.size());
    stream.output("c", c.data(), c.size());
    launch<Product90>(stream, {1},
                      {tensor_map<64>(View<const bf16, 2>(a.data(), {64, depth})),
                       tensor_map<64>(View<const bf16, 2>(b.data(), {64, depth})),
                       tensor_map<64>(View<bf16, 2>(c.data(), {64, 64})), depth});
    if (!stream.finish().empty()) return stream.error();
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) {
        float exact = 0;
        for (int k = 0; k < depth; ++k) exact += at(a, i * depth + k) * at(b, j * depth + k);
        if (at(c, i * 64 + j) != to_float(to_bf16(exact))) return "VALUES of c";
      }
    return "";
  }
};

struct GatherCase {
  static constexpr int queries = 2, heads = 64, dim = 128, rows = 100, slots = 230;
  std::vector<bf16> query = small_integers(queries * heads * dim, 5, 3);
  std::vector<bf16> pool = small_integers(rows * dim, 7, 3);
  std::vector<int> index = std::vector<int>(queries * slots);
  std::vector<float> out = std::vector<float>(queries * heads * dim);

  GatherCase() {
    // Holes everywhere, and no key at all in the first tile of the second query.
    for (int i = 0; i < queries * slots; ++i)
      index[static_cast<std::size_t>(i)] =
          i % 5 == 0 || (i >= slots && i < slots + 64) ? -1 : i * 37 % rows;
  }
  std::string run(Stream& stream) {
    stream.input("query", query.data(), query.size());
    stream.input("pool", pool.data(), pool.size());
    stream.input("index", index.data(), index.size());
    stream.output("out", out.data(), out.size());
    launch<Gather90<dim>>(stream, {queries},
                          {{query.data(), {queries, heads, dim}},
                           {pool.data(), {rows, dim}},
                           {index.data(), {queries, slots}},
                           {out.data(), {queries, heads, dim}}});
    if (!stream.finish().empty()) return stream.error();
    for (int t = 0; t < queries; ++t)
      for (int h = 0; h < heads; ++h) {
        std::vector<float> exact(dim);
        for (int slot = 0; slot < slots; ++slot) {
          const int row = index[static_cast<std::size_t>(t * slots + slot)];
          if (row < 0) continue;
          float score = 0;
          for (int d = 0; d < dim; ++d)
            score += at(query, (t * heads + h) * dim + d) * at(pool, row * dim + d);
          for (int d = 0; d < dim; ++d)
            exact[static_cast<std::size_t>(d)] += score * at(pool, row * dim + d);
        }
        for (int d = 0; d < dim; ++d)
          if (out[static_cast<std::size_t>((t * heads + h) * dim + d)] !=
              exact[static_cast<std::size_t>(d)])
            return "VALUES of out";
      }
    return "";
  }
};

}  // namespace plumbline::device::host
