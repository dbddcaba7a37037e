// bench/f192_bench.cpp
//
// f192 against MPFR (171 bits, on the stack, through Boost) and Boost's cpp_bin_float_50: time per
// operation, all in one run, the three taking turns; the fastest of many short rounds counts.
// Ratios are what to read: they survive a slower machine. Throughput is measured on arrays, as
// operations use it; "chain" is the latency of an accumulation.
#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/mpfr.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "reference/numeric/f192.hpp"

namespace {

namespace mp = boost::multiprecision;
using plumbline::f192;
using Mpfr = mp::number<mp::mpfr_float_backend<51, mp::allocate_stack>, mp::et_off>;
using Bin50 = mp::number<mp::cpp_bin_float<50>, mp::et_off>;

constexpr int size = 256;

// Full-width numbers in [1/2, 2) with mixed signs.
template <class T> std::vector<T> numbers(std::uint64_t seed) {
  std::vector<T> result;
  for (int i = 0; i < size; ++i) {
    T x = 0;
    for (int word = 0; word < 4; ++word) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      x = (x + T(static_cast<double>(seed >> 16))) / T(0x1p48);
    }
    const T spread = T(0.5) + T(1.5) * x;
    result.push_back((seed >> 40) % 2 == 0 ? spread : T(-spread));
  }
  return result;
}

template <class T> struct Operations {
  std::vector<T> a = numbers<T>(1), b = numbers<T>(2), c = numbers<T>(3), out = c;
  T sum = 0;

  template <class F> double nanoseconds(int repeat, F&& operation) {
    const auto start = std::chrono::steady_clock::now();
    for (int r = 0; r < repeat; ++r) {
      operation(*this);
      asm volatile("" : : "r"(out.data()), "r"(&sum) : "memory");
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    return spent.count() / repeat / size;
  }

  void multiply() {
    for (int i = 0; i < size; ++i) out[at(i)] = a[at(i)] * b[at(i)];
  }
  void add() {
    for (int i = 0; i < size; ++i) out[at(i)] = a[at(i)] + b[at(i)];
  }
  void multiply_add() {
    for (int i = 0; i < size; ++i) out[at(i)] = c[at(i)] + a[at(i)] * b[at(i)];
  }
  void chain() {
    T total = 0;
    for (int i = 0; i < size; ++i) total += a[at(i)] * b[at(i)];
    sum = total;
  }
  void reciprocal() {
    for (int i = 0; i < size; ++i) out[at(i)] = 1 / a[at(i)];
  }
  void root() {
    for (int i = 0; i < size; ++i) out[at(i)] = sqrt(abs(a[at(i)]));
  }
  void exponential() {
    for (int i = 0; i < size; ++i) out[at(i)] = exp(a[at(i)]);
  }
  void logarithm() {
    for (int i = 0; i < size; ++i) out[at(i)] = log(abs(a[at(i)]));
  }
  void exponential_minus_one() {
    for (int i = 0; i < size; ++i) out[at(i)] = expm1(a[at(i)]);
  }
  void power() {
    for (int i = 0; i < size; ++i) out[at(i)] = pow(abs(a[at(i)]), b[at(i)]);
  }
  void sine() {
    for (int i = 0; i < size; ++i) out[at(i)] = sin(a[at(i)]);
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
};

template <class F> void compare(const std::string& name, int repeat, F&& operation) {
  static Operations<f192> own;
  static Operations<Mpfr> mpfr;
  static Operations<Bin50> bin50;
  double f = 1e300, m = 1e300, b = 1e300;
  for (int round = 0; round < 25; ++round) {
    f = std::min(f, own.nanoseconds(repeat, operation));
    m = std::min(m, mpfr.nanoseconds(std::max(1, repeat / 10), operation));
    b = std::min(b, bin50.nanoseconds(std::max(1, repeat / 50), operation));
  }
  std::printf("%-16s %9.1f %9.1f %9.1f   %8.1f %8.1f\n", name.c_str(), f, m, b, m / f, b / f);
}

}  // namespace

int main() {
  std::printf("%-16s %9s %9s %9s   %8s %8s\n", "ns", "f192", "mpfr171", "bin50", "mpfr/", "bin50/");
  compare("multiply", 200, [](auto& x) { x.multiply(); });
  compare("add", 200, [](auto& x) { x.add(); });
  compare("multiply-add", 100, [](auto& x) { x.multiply_add(); });
  compare("chain", 100, [](auto& x) { x.chain(); });
  compare("reciprocal", 25, [](auto& x) { x.reciprocal(); });
  compare("sqrt", 25, [](auto& x) { x.root(); });
  compare("exp", 15, [](auto& x) { x.exponential(); });
  compare("log", 15, [](auto& x) { x.logarithm(); });
  compare("expm1", 10, [](auto& x) { x.exponential_minus_one(); });
  compare("pow", 10, [](auto& x) { x.power(); });
  compare("sin", 10, [](auto& x) { x.sine(); });
}
