// tests/support/draw.hpp
//
// Random choices for rapidcheck properties. Sizes, options and switches are drawn one by one, so that rapidcheck can
// shrink them; the contents of tensors come from a Stream keyed by a drawn seed and the tensor's name, so that a
// shrunk shape keeps simple contents. Doubles are made from their bits: an even spread over exponents, which a
// uniform distribution never reaches.
#pragma once
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rapidcheck/detail/TestListenerAdapter.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/distribution.hpp"

namespace plumbline::support {

// An integer in [low, high], whatever rapidcheck's size; shrinks towards low.
inline std::int64_t pick(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(low, high + 1));
}
inline bool chance(int percent) { return pick(0, 99) >= 100 - percent; }  // shrinks towards false
template <class U> U one_of(const std::vector<U>& list) {
  return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
}

enum class Contents { integers, dyadic, bits, wide };  // small integers; k/16 in [-2, 2]; random bits; up to ±128

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

// Runs a property as part of a GoogleTest test: body draws, checks with RC_ASSERT and counts its classes. The seed is
// that of RC_PARAMS (tests/support/property_main.hpp fixes it) mixed with the test's name, so that two properties do
// not see the same cases; a failure prints how to reproduce it.
template <class Body> void property(const std::string& part, Body body) {  // one of several in a test
  namespace detail = rc::detail;
  const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = info->name() + (part.empty() ? "" : " " + part);
  detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + name;
  metadata.description = name;
  detail::TestParams parameters = detail::configuration().testParams;
  parameters.seed ^= Stream(0, metadata.id).next();

  Distribution distribution;
  const detail::Property cases = detail::toProperty([&] {
    distribution.next_case();
    body(distribution);
  });
  detail::TestListenerAdapter listener;
  const detail::TestResult result =
      detail::checkProperty(cases, metadata, parameters, listener, detail::configuration().reproduce);
  if (result.template is<detail::SuccessResult>()) {
    distribution.finish(name);
    return;
  }
  std::ostringstream text;
  detail::printResultMessage(result, text);
  FAIL() << text.str() << "\nseed " << parameters.seed << "; to see it again: RC_PARAMS=\"" << std::getenv("RC_PARAMS")
         << "\" --gtest_filter=" << info->test_suite_name() << "." << info->name() << std::endl;
}
template <class Body> void property(Body body) { property("", body); }

}  // namespace plumbline::support
