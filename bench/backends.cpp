// Which Boost.Multiprecision back end carries mp50: MPFR with storage in the object, or cpp_bin_float?
// Prints nanoseconds per operation and their ratio, all in one run. The choice is in reference/numeric/scalar.hpp.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "reference/numeric/scalar.hpp"

namespace {

using bin50 = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<50>,
                                            boost::multiprecision::et_off>;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Times {
  double multiply_add, exp, log;
};

template <class T> Times measure() {
  std::vector<T> a, b;
  for (int i = 1; i <= 256; ++i) {
    a.push_back(T(i) / T(257));
    b.push_back(T(1) + T(i) / T(1021));
  }
  const auto nanoseconds = [&](int rounds, auto body) {
    const double start = seconds();
    for (int round = 0; round < rounds; ++round) body();
    return (seconds() - start) / rounds / static_cast<double>(a.size()) * 1e9;
  };
  T sum(0);
  Times times{};
  times.multiply_add = nanoseconds(400, [&] {
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  });
  times.exp = nanoseconds(20, [&] {
    for (const T& x : a) sum += exp(x);
  });
  times.log = nanoseconds(20, [&] {
    for (const T& x : b) sum += log(x);
  });
  if (sum == T(0)) std::puts("");  // the work is not to be optimised away
  return times;
}

}  // namespace

int main() {
  const Times mpfr = measure<plumbline::mp50>(), bin = measure<bin50>();
  std::printf("50 digits, ns per operation   MPFR in place   cpp_bin_float   ratio\n");
  const auto line = [](const char* name, double x, double y) {
    std::printf("%-28s %14.1f %15.1f %7.2f\n", name, x, y, y / x);
  };
  line("multiply-add", mpfr.multiply_add, bin.multiply_add);
  line("exp", mpfr.exp, bin.exp);
  line("log", mpfr.log, bin.log);
}
