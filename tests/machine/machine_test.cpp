// Three honest kernels on the host: right values in every schedule, order and arithmetic; every
// synchronisation they have is needed, and its loss is reported.
#include <gtest/gtest.h>

#include <set>

#include "device/machine/host/removals.hpp"
#include "tests/machine/kernels_testing.hpp"

namespace plumbline::device::host {
namespace {

template <class Case> class Kernels : public testing::Test {};
using Cases = testing::Types<ProductCase, Product90Case, GatherCase>;
TYPED_TEST_SUITE(Kernels, Cases);

TYPED_TEST(Kernels, AreRightInEveryScheduleAndArithmetic) {
  TypeParam c;
  for (const bool late : {false, true})
    for (const Products model : {Products::sequential, Products::once, Products::truncated})
      for (const bool shadow : {false, true}) {
        Stream stream({.seed = 5, .shadow = shadow, .late = late, .products = model});
        EXPECT_EQ(c.run(stream), "");
      }
}

TYPED_TEST(Kernels, AreRightInEveryOrder) {
  TypeParam c;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Stream stream({.seed = seed, .late = seed % 2 == 0});
    EXPECT_EQ(c.run(stream), "");
  }
}

TYPED_TEST(Kernels, NeedEverySynchronisation) {
  TypeParam c;
  const auto removals = leave_out_each([&](Stream& stream) { return c.run(stream); }, {.seed = 3});
  std::printf("%s", table(removals).c_str());
  EXPECT_GE(removals.size(), 6u);
  for (const Removal& removal : removals) EXPECT_TRUE(removal.reported()) << table({removal});
}

// At its first passage alone each is needed too. The last rounds of a ring may guard nothing.
TYPED_TEST(Kernels, NeedEverySynchronisationTheFirstTime) {
  TypeParam c;
  const Run run = [&](Stream& stream) { return c.run(stream); };
  const auto removals = leave_out_each(run, {.seed = 3}, 2);
  std::printf("%s", table(removals).c_str());
  for (const Removal& removal : removals)
    EXPECT_TRUE(removal.passage > 0 || removal.reported()) << table({removal});
}

}  // namespace
}  // namespace plumbline::device::host
