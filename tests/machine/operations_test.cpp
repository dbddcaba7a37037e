// The operations one by one: what they compute, and what a stream says about buffers.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "device/machine/machine.hpp"
#include "tests/machine/crimes/copies.hpp"

namespace plumbline::device::host {
namespace {

// A kernel out of a lambda: its captures are the arguments.
template <int Threads, class PlanOf> struct Ad {
  static constexpr int threads = Threads;
  struct Args {
    std::function<void(PlanOf&)> body;
  };
  using Plan = PlanOf;
  static void run(const Args& a, Plan& s) { a.body(s); }
};
struct Nothing {};
template <int Threads, class PlanOf = Nothing>
std::string play(std::type_identity_t<std::function<void(PlanOf&)>> body, Options options = {},
                 Grid grid = {}) {
  Stream stream(std::move(options));
  launch<Ad<Threads, PlanOf>>(stream, grid, {std::move(body)});
  return stream.error();
}

TEST(Threads, KnowWhoTheyAre) {
  std::set<std::vector<int>> seen;
  const auto body = [&](Nothing&) {
    EXPECT_EQ(warp() * 32 + lane(), thread());
    EXPECT_EQ(blocks(0) * 100 + blocks(1) * 10 + blocks(2), 234);
    seen.insert({thread(), block(0), block(1), block(2)});
  };
  EXPECT_EQ(play<64>(body, {}, {2, 3, 4}), "");
  EXPECT_EQ(seen.size(), 64u * 24);
  EXPECT_EQ(play<64>([](Nothing&) { ADD_FAILURE(); }, {}, {0, 3, 4}), "");
}

TEST(Threads, RunInAnOrderThatTheSeedDecides) {
  const auto order = [](std::uint64_t seed) {
    std::vector<int> out;
    play<64>([&](Nothing&) { out.push_back(thread()); }, {.seed = seed});
    return out;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST(Lanes, Exchange) {
  const auto body = [](Nothing&) {
    EXPECT_EQ(shuffle_xor(thread(), 5), thread() ^ 5);
    EXPECT_EQ(shuffle(thread(), 3), warp() * 32 + 3);
    EXPECT_EQ(shuffle(thread(), lane() / 2), warp() * 32 + lane() / 2);
    EXPECT_EQ(ballot(lane() % 3 == 0), 0x49249249u);
    EXPECT_EQ(warp_sum(lane()), 31 * 16);
    EXPECT_EQ(warp_maximum(lane()), 31);
  };
  EXPECT_EQ(play<64>(body), "");
}

// ---- numbers ------------------------------------------------------------------------------------

double ulps(float got, double exact) {
  return std::fabs(static_cast<double>(got) - exact) /
         std::ldexp(1.0, std::ilogb(static_cast<float>(exact)) - 23);
}

TEST(Numbers, OfFastFunctionsStayWithinTheirUlpAndUseIt) {
  double worst[4] = {}, log_error = 0;
  const auto body = [&](Nothing&) {
    if (thread()) return;
    for (int i = 1; i < 20000; ++i) {
      const float x = static_cast<float>(i) * 0.00317f;
      const double d = static_cast<double>(x);
      worst[0] =
          std::max(worst[0], ulps(fast_exp2(x - 30.f), std::exp2(static_cast<double>(x - 30.f))));
      worst[1] = std::max(worst[1], ulps(fast_reciprocal(x), 1 / d));
      worst[2] = std::max(worst[2], ulps(fast_rsqrt(x), 1 / std::sqrt(d)));
      if (x > 0.5f && x < 2.f)
        log_error =
            std::max(log_error, std::fabs(static_cast<double>(fast_log2(x)) - std::log2(d)));
      else
        worst[3] = std::max(worst[3], ulps(fast_log2(x), std::log2(d)));
      EXPECT_EQ(fast_exp2(x), fast_exp2(x));
    }
  };
  EXPECT_EQ(play<32>(body), "");
  const int promised[] = {fast_exp2_ulp, fast_reciprocal_ulp, fast_rsqrt_ulp, fast_log2_ulp};
  for (int i = 0; i < 4; ++i) {
    EXPECT_LE(worst[i], promised[i]);
    EXPECT_GT(worst[i], 0.9 * promised[i]);
  }
  EXPECT_LE(log_error, std::ldexp(1.001, -22));
  EXPECT_GT(log_error, std::ldexp(0.9, -22));
}

TEST(Numbers, OfFastFunctionsWanderWithTheSeedOnly) {
  const auto value = [](Options options) {
    float out = 0;
    play<32>([&](Nothing&) { out = fast_exp2(0.3f); }, options);
    return out;
  };
  std::set<float> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) seen.insert(value({.seed = seed}));
  EXPECT_GT(seen.size(), 2u);
  EXPECT_EQ(value({.seed = 1, .wander = false}), value({.seed = 2, .wander = false}));
}

TEST(Numbers, HaveTheHardwaresSpecialValues) {
  const float infinite = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              tiny = std::numeric_limits<float>::denorm_min();
  const auto body = [&](Nothing&) {
    EXPECT_EQ(fast_exp2(-infinite), 0.f);
    EXPECT_EQ(fast_exp2(infinite), infinite);
    EXPECT_EQ(fast_exp2(0.f), 1.f);
    EXPECT_EQ(fast_exp2(-140.f), 0.f);  // a subnormal result
    EXPECT_EQ(fast_log2(0.f), -infinite);
    EXPECT_EQ(fast_log2(tiny), -infinite);
    EXPECT_EQ(fast_log2(infinite), infinite);
    EXPECT_TRUE(std::isnan(fast_log2(-1.f)));
    EXPECT_EQ(fast_reciprocal(0.f), infinite);
    EXPECT_EQ(fast_reciprocal(-infinite), 0.f);
    EXPECT_EQ(fast_rsqrt(0.f), infinite);
    for (auto f : {fast_exp2, fast_log2, fast_reciprocal, fast_rsqrt})
      EXPECT_TRUE(std::isnan(f(nan)));
    EXPECT_TRUE(std::isnan(maximum(nan, 1.f)) && std::isnan(maximum(1.f, nan)));
    EXPECT_TRUE(std::isnan(minimum(nan, 1.f)) && std::isnan(minimum(1.f, nan)));
    EXPECT_EQ(maximum(-infinite, 2.f), 2.f);
  };
  EXPECT_EQ(play<32>(body), "");
}

TEST(Numbers, RoundToBf16AsTheyShould) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 x{static_cast<std::uint16_t>(bits)};
    const float f = to_float(x);
    if (std::isnan(f)) {
      EXPECT_EQ(to_bf16(f).bits, 0x7FFF);
      continue;
    }
    EXPECT_EQ(to_bf16(f).bits, x.bits);
    if (std::isinf(f)) continue;
    // Half-way to the next goes to the even one, the rest to the nearer.
    const std::uint32_t half = bits << 16 | 0x8000;
    EXPECT_EQ(to_bf16(as_float(half)).bits, bits + (bits & 1));
    EXPECT_EQ(to_bf16(as_float(half - 1)).bits, bits);
    EXPECT_EQ(to_bf16(as_float(half + 1)).bits, bits + 1);
  }
  EXPECT_EQ(pack(1.f, -2.f), 0xC0003F80u);
  EXPECT_EQ(half_of(0xC0003F80u, 1).bits, 0xC000);
}

// ---- memory -------------------------------------------------------------------------------------

struct Floats {
  Array<float, 64> f;
  Tile<bf16, 32, 64, Padded<8>> a, b;
};

TEST(Memory, WideAccessesMoveWords) {
  const auto body = [](Floats& s) {
    if (thread() >= 16) return;
    store(s.f[thread() * 4], Words<16>{{as_word(1.f), as_word(2.f), as_word(3.f), as_word(4.f)}});
    EXPECT_EQ(float(s.f[thread() * 4 + 2]), 3.f);
    EXPECT_EQ(as_float(load<8>(s.f[thread() * 4 + 2]).word[1]), 4.f);
    s.f[thread() * 4] += 5.f;
    s.f[thread() * 4] *= 2.f;
    s.f[thread() * 4] -= 1.f;
    EXPECT_EQ(float(s.f[thread() * 4]), 11.f);
    store_pair(s.a(thread(), 2), pack(7.f, 8.f));
    EXPECT_EQ(to_float(s.a(thread(), 3)), 8.f);
  };
  EXPECT_EQ((play<32, Floats>(body)), "");
}

TEST(Memory, OfAStridedViewIsReadInPlace) {
  std::vector<float> data(60);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  Stream stream;
  stream.input("data", data.data(), data.size());
  const View<const float, 2> slice(data.data() + 3, {5, 4}, {12, 1});
  const auto body = [&](Nothing&) {
    if (thread() >= 20) return;
    EXPECT_EQ(float(slice(thread() / 4, thread() % 4)),
              static_cast<float>(3 + thread() / 4 * 12 + thread() % 4));
  };
  launch<Ad<32, Nothing>>(stream, {}, {body});
  EXPECT_EQ(stream.error(), "");
  EXPECT_THROW((View<const float, 2>(data.data(), {5, 4}, {1, 12})), std::invalid_argument);
}

TEST(Memory, ReductionsComeInAnyOrder) {
  std::set<float> sums;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<float> sum(4);
    int largest = 0;
    Stream stream({.seed = seed});
    stream.accumulator("sum", sum.data(), 4);
    stream.accumulator("largest", &largest, 1);
    const View<float, 1> to(sum.data(), {4});
    const View<int, 1> top(&largest, {1});
    const auto body = [&](Nothing&) {
      const float x = 1.f / static_cast<float>(1 + thread() * thread());
      reduce_add4(to(0), x, 1.f, 2.f, 3.f);
      atomic_maximum(top(0), thread());
    };
    launch<Ad<64, Nothing>>(stream, {3}, {body});
    EXPECT_EQ(stream.finish(), "");
    EXPECT_EQ(sum[1] + sum[2] + sum[3], 6.f * 192);
    EXPECT_EQ(largest, 63);
    sums.insert(sum[0]);
  }
  EXPECT_GT(sums.size(), 1u);  // a result that depends on the order is seen to
}

TEST(Memory, InFlightHoldsNaNWhenNobodyWatches) {
  std::vector<int> out(64);
  std::vector<float> in(128, 1.f), sum(1);
  for (const bool late : {false, true}) {
    Stream stream({.shadow = false, .late = late});
    stream.output("out", out.data(), 64), stream.input("in", in.data(), 128),
        stream.accumulator("sum", sum.data(), 1);
    struct Peek : Crime32 {
      static void run(const Args& a, Plan& s) {
        copy_async16(s.f[thread() * 4], a.in(thread() * 4));
        commit();
        EXPECT_EQ(std::isnan(float(s.f[thread() * 4])), Machine::current().options.late);
        wait_groups<0>();
        EXPECT_EQ(float(s.f[thread() * 4]), 1.f);
      }
    };
    launch<Peek>(stream, {}, {{out.data(), {64}}, {in.data(), {128}}, {sum.data(), {1}}});
    EXPECT_EQ(stream.error(), "");
  }
}

TEST(Streams, KnowTheirBuffers) {
  std::vector<float> data(64), other(8);
  Stream stream;
  stream.input("data", data.data(), data.size());
  EXPECT_THROW(stream.output("again", data.data() + 60, 8), std::invalid_argument);

  const View<float, 1> writes(data.data(), {64}), foreign(other.data(), {8}),
      longer(data.data(), {65});
  launch<Ad<32, Nothing>>(stream, {}, {[&](Nothing&) { writes(thread()) = 1.f; }});
  EXPECT_TRUE(stream.error().starts_with("WRITE to input data")) << stream.error();
  const std::string first = stream.error();
  launch<Ad<32, Nothing>>(stream, {},
                          {[](Nothing&) { ADD_FAILURE(); }});  // the first crime ends it
  EXPECT_EQ(stream.error(), first);

  for (const auto& view : {foreign, longer}) {
    Stream again;
    again.workspace("data", data.data(), data.size());
    launch<Ad<32, Nothing>>(again, {}, {[&](Nothing&) {
                              if (thread() == 0) view(0) = 1.f;
                            }});
    EXPECT_TRUE(again.error().starts_with("OUT OF BOUNDS: a view")) << again.error();
  }
  std::vector<float> none;
  Stream empty;
  empty.output("none", none.data(), 0);
  empty.output("data", data.data(), 0);
  const View<float, 2> nobody(data.data(), {0, 4});
  launch<Ad<32, Nothing>>(empty, {}, {[&](Nothing&) { nobody(0, 1) = 1.f; }});
  EXPECT_TRUE(empty.finish().starts_with("OUT OF BOUNDS: index 0 of axis 0 of data"))
      << empty.error();

  const View<float, 1> absent;
  EXPECT_FALSE(absent.exists());
  EXPECT_TRUE(play<32>([&](Nothing&) { absent(0) = 1.f; }).starts_with("OUT OF BOUNDS: index 0"));
}

TEST(Streams, OrderOneLaunchAfterAnother) {
  std::vector<int> data(64);
  Stream stream;
  stream.workspace("data", data.data(), data.size());
  const View<int, 1> v(data.data(), {64});
  for (int round = 0; round < 3; ++round)
    launch<Ad<64, Nothing>>(stream, {}, {[&, round](Nothing&) {
                              // What the launch before has written.
                              EXPECT_TRUE(round == 0 || int(v(63 - thread())) == round - 1);
                              sync_block();
                              v(thread()) = round;
                            }});
  EXPECT_EQ(stream.finish(), "");
}

TEST(Streams, OfSeveralOsThreadsDoNotMeet) {
  std::vector<std::string> reports(4);
  std::vector<std::thread> pool;
  for (std::size_t i = 0; i < reports.size(); ++i)
    pool.emplace_back([&reports, i] {
      reports[i] = play<64>(
          [](Nothing&) {
            for (int k = 0; k < 50; ++k) sync_block();
            EXPECT_EQ(warp_sum(1), 32);
          },
          {.seed = i}, {3});
    });
  for (std::thread& t : pool) t.join();
  for (const std::string& report : reports) EXPECT_EQ(report, "");
}

TEST(Streams, CarryWhatKernelsThrow) {
  EXPECT_EQ(play<64>([](Nothing&) {
              if (thread() == 40) throw std::runtime_error("a host-only complaint");
              sync_block();
            }),
            "a host-only complaint [block 0, 0, 0]");
}

}  // namespace
}  // namespace plumbline::device::host
