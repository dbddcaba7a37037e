// tests/machine/crimes/crimes.hpp
//
// One small kernel per crime. <true> is its honest twin, which differs by the one thing that
// matters and must run without complaint. The texts are compiled for the GPU as well.
#pragma once
#include "device/machine/machine.hpp"

namespace plumbline::device::PLUMBLINE_SIDE {

struct CrimeArgs {
  View<int, 1> out;         // 64, every element is to be written
  View<const float, 1> in;  // 128
  View<float, 1> sum;       // 1, for atomics
};
struct CrimePlan {
  Array<int, 128> x;
  Array<float, 128> f;
};
template <int Threads, class PlanOf = CrimePlan> struct CrimeOf {
  static constexpr int threads = Threads;
  using Args = CrimeArgs;
  using Plan = PlanOf;
};
using Crime64 = CrimeOf<64>;
using Crime32 = CrimeOf<32>;

}  // namespace plumbline::device::PLUMBLINE_SIDE
