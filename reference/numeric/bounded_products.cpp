#include <algorithm>
#include <cstring>

#include "reference/numeric/bounded_sums.hpp"
#include "reference/numeric/operand.hpp"

namespace plumbline {
namespace {

// Σ ab, Σ |ab|, Σ (ab)² and how many of the products are not 0.
template <class V> struct ProductSum {
  V value{0};
  double mass = 0, squares = 0, count = 0;
  void add(const V& a, const V& b) {
    const V product = a * b;
    const double size = std::fabs(static_cast<double>(product));
    value += product;
    mass += size, squares += size * size, count += size != 0 ? 1 : 0;
  }
};
template <class V> ProductSum<V> products(std::span<const V> a, std::span<const V> b) {
  ProductSum<V> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(a[i], b[i]);
  return sum;
}
// Sixteen sums of each at once, since an addition waits for the one before it; the same sixteen, and so the same bits,
// whatever vectors the machine has.
[[gnu::always_inline]] inline ProductSum<f64> products_in_lanes(const double* a, const double* b,
                                                                std::size_t size) {
  typedef double Lanes __attribute__((vector_size(32)));
  typedef long long Bits __attribute__((vector_size(32)));
  constexpr std::size_t width = 4, unrolled = 4, step = unrolled * width;
  Lanes value[unrolled]{}, mass[unrolled]{}, squares[unrolled]{};
  Bits nonzero{};
  std::size_t i = 0;
  for (; i + step <= size; i += step) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < unrolled; ++part) {
      Lanes x, y;
      std::memcpy(&x, a + i + part * width, sizeof x);
      std::memcpy(&y, b + i + part * width, sizeof y);
      const Lanes product = x * y;
      value[part] += product;
      mass[part] += reinterpret_cast<Lanes>(reinterpret_cast<Bits>(product) & 0x7fffffffffffffff);
      squares[part] += product * product;
      nonzero -= product != 0;
    }
  }
  const auto total = [](const Lanes(&x)[unrolled]) {
    const Lanes each = (x[0] + x[1]) + (x[2] + x[3]);
    return (each[0] + each[1]) + (each[2] + each[3]);
  };
  const long long count = (nonzero[0] + nonzero[1]) + (nonzero[2] + nonzero[3]);
  ProductSum<f64> sum{total(value), total(mass), total(squares), static_cast<double>(count)};
  for (; i < size; ++i) sum.add(a[i], b[i]);
  return sum;
}
ProductSum<f64> products_plain(const double* a, const double* b, std::size_t size) {
  return products_in_lanes(a, b, size);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] ProductSum<f64> products_avx2(const double* a, const double* b,
                                                      std::size_t size) {
  return products_in_lanes(a, b, size);
}
#endif
template <> ProductSum<f64> products(std::span<const f64> a, std::span<const f64> b) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (wide) return products_avx2(a.data(), b.data(), a.size());
#endif
  return products_plain(a.data(), b.data(), a.size());
}

}  // namespace

template <class V>
Bounded<V> Bounded<V>::sum_of(const V& value, double mass, double squares, double count) {
  Bounded x;
  x.value_ = value;
  if (count == 0) return x;
  const double u = arithmetic().unit, least = count * arithmetic().least;
  x.own_ = u * mass + least, x.spread_ = u * u * squares / 3, x.common_ = least;
  x.gauge_ = mass, x.terms_ = count, x.reach_ = mass + x.own_, x.mass_ = mass;
  return x;
}
template <class V> Bounded<V> dot(const BoundedOperand<V>& a, const BoundedOperand<V>& b) {
  if (a.is_exact() && b.is_exact()) {
    const ProductSum<V> sum = products<V>(a.values, b.values);
    return Bounded<V>::sum_of(sum.value, sum.mass, sum.squares, sum.count);
  }
  Bounded<V> total(0);
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}
// Every error of a·x[i] is |x[i]| times one of a's, but for the two that underflow costs.
template <class V>
void Bounded<V>::add_scaled(std::span<Bounded> y, const Bounded& a, std::span<const V> x) {
  const Arithmetic& m = arithmetic();
  const Bounded f = a.finished();
  const bool rounds = !(f.magnitude() == 1 && f.is_exact());
  const double u = rounds ? m.unit : 0, least = rounds ? m.least : 0, size = f.magnitude(),
               own = f.own_ + u * (size + f.own_), spread = f.spread_ + u * u * size * size / 3,
               common = f.common_ + u * std::min(f.own_, f.likely()), reach = size + own;
  if (size == 0 && own == 0) return;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double by = std::fabs(static_cast<double>(x[i]));
    if (by == 0) continue;
    Bounded& to = y[i];
    if (to.terms_ == 0) to.begin();
    to.value_ += f.value_ * x[i];
    to.own_ += by * own + least, to.spread_ += by * by * spread, to.row_ += by * f.row_;
    to.common_ += by * common + least, to.gauge_ += by * f.gauge_;
    to.terms_ += 1, to.reach_ += by * reach + least, to.mass_ += by * size;
  }
}
template <class V>
void add_scaled(std::span<Bounded<V>> y, const Bounded<V>& a, const BoundedOperand<V>& x) {
  if (x.is_exact()) {
    Bounded<V>::add_scaled(y, a, x.values);
    return;
  }
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}
// What d·Σ ab adds to a sum: d errs once, each product is rounded twice, and its terms are terms of that sum.
template <class V> void Bounded<V>::add_products(const Bounded& d, const V& value, double mass,
                                                 double squares, double count) {
  const Arithmetic& m = arithmetic();
  const double size = std::fabs(static_cast<double>(value)), most = d.magnitude() + d.own_,
               least = 2 * count * m.least;
  if (terms_ == 0) begin();
  value_ += d.value_ * value;
  own_ += size * d.own_ + 2 * m.unit * (1 + m.unit) * most * mass + least;
  spread_ += size * size * d.spread_ + 2 * square(m.unit * d.magnitude()) * squares / 3;
  row_ += size * d.row_;
  common_ += size * d.common_ + 2 * m.unit * std::min(d.own_, d.likely()) * mass + least;
  gauge_ += d.gauge_ * mass, terms_ += count, reach_ += most * mass * (1 + 2 * m.unit) + least;
  mass_ += d.magnitude() * mass;
}
template <class V> void add_combined(std::span<Bounded<V>> y, const Bounded<V>& d,
                                     std::span<const Bounded<V>> a, const BoundedOperand<V>& rows) {
  const std::size_t width = y.size();
  const auto exact = [](const Bounded<V>& x) { return x.is_exact(); };
  if (!rows.is_exact() || !std::all_of(a.begin(), a.end(), exact)) {
    for (std::size_t n = 0; n < a.size(); ++n) {
      if (!is_zero(a[n])) add_scaled(y, d * a[n], rows.subspan(n * width, width));
    }
    return;
  }
  const Bounded<V> factor = d.finished();
  if (is_zero(factor)) return;
  Buffer<ProductSum<V>> sums(width);
  for (std::size_t n = 0; n < a.size(); ++n) {
    if (is_zero(a[n])) continue;
    const V* const row = rows.values.data() + n * width;
    for (std::size_t i = 0; i < width; ++i) sums[i].add(a[n].value(), row[i]);
  }
  for (std::size_t i = 0; i < width; ++i) {
    const ProductSum<V>& s = sums[i];
    if (s.count > 0) y[i].add_products(factor, s.value, s.mass, s.squares, s.count);
  }
}

#define INSTANTIATE(V)                                                                          \
  template Bounded<V> dot(const BoundedOperand<V>&, const BoundedOperand<V>&);                  \
  template void add_scaled(std::span<Bounded<V>>, const Bounded<V>&, const BoundedOperand<V>&); \
  template void add_combined(std::span<Bounded<V>>, const Bounded<V>&,                          \
                             std::span<const Bounded<V>>, const BoundedOperand<V>&);
INSTANTIATE(f64)
INSTANTIATE(f192)

}  // namespace plumbline
