// tests/support/stream.hpp
//
// Contents of test tensors: numbers that depend on a seed and the tensor's name alone, the same everywhere. Doubles
// are made from their bits: an even spread over exponents, which a uniform distribution never reaches.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plumbline::support {

enum class Contents {
  integers,
  dyadic,
  bits,
  wide
};  // small integers; k/16 in [-2, 2]; random bits; up to ±128

class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name) : state_(seed * 0x9e3779b97f4a7c15u + 1) {
    for (const char c : name) state_ = (state_ ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
    next();
  }
  std::uint64_t next() {  // splitmix64
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return pick(0, 99) < percent; }
  // sign, an exponent in [low, high] and 52 fraction bits, all evenly
  double bits(int low, int high) {
    const std::uint64_t field = static_cast<std::uint64_t>(pick(low, high) + 1023);
    return std::bit_cast<double>((next() & 0x800fffffffffffffu) | (field << 52));
  }
  double real(Contents contents) {
    switch (contents) {
      case Contents::integers: return static_cast<double>(pick(-2, 2));
      case Contents::dyadic: return std::ldexp(static_cast<double>(pick(-32, 32)), -4);
      case Contents::bits: return chance(5) ? 0.0 : bits(-9, 0);
      case Contents::wide: return static_cast<double>(pick(-128, 128));
    }
    return 0;
  }
  std::vector<double> reals(std::int64_t count, Contents contents) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& x : values) x = real(contents);
    return values;
  }
  std::vector<std::int64_t> shuffled(std::int64_t count) {
    std::vector<std::int64_t> list(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto j = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(i)));
      list[i] = list[j];
      list[j] = static_cast<std::int64_t>(i);
    }
    return list;
  }

 private:
  std::uint64_t state_;
};

}  // namespace plumbline::support
