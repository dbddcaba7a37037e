// Every kernel of the table on the host machine: right by its contract in both schedules and all
// arithmetics, the same bits in every order where that is claimed, and no synchronisation that it
// does not need or whose loss would go unnoticed.
#include <gtest/gtest.h>

#include <map>

#include "device/machine/host/removals.hpp"
#include "tools/kernels/trial.hpp"

namespace plumbline {
namespace {

namespace host = device::host;

class Kernels : public testing::TestWithParam<const Kernel*> {
 protected:
  const Kernel& kernel() const { return *GetParam(); }
  std::vector<KernelCase> odd_cases() const { return taken(cases_of(kernel(), "")); }
  std::vector<KernelCase> all_cases() const {
    return taken(cases_of(kernel(), PLUMBLINE_SUITES "/" + kernel().op + ".json"));
  }

 private:
  static std::vector<KernelCase> taken(std::vector<KernelCase> cases) {
    std::erase_if(cases, [](const KernelCase& one) { return !one.refused.empty(); });
    return cases;
  }
};

TEST_P(Kernels, PassTheirContract) {
  for (const KernelCase& one : all_cases()) {
    Trials trials(kernel(), one);
    for (std::uint64_t n = 0; n < 3; ++n) {  // all arithmetics
      const host::Options options = machine_number(n);
      const Trial trial = trials.run(options);
      EXPECT_TRUE(trial.passed() || (trial.unprovable() && !one.unprovable.empty()))
          << kernel().op << " " << kernel().name << " " << one.name << ", "
                                  << describe(options) << ": " << trial.verdict() << " "
                                  << trial.reason();
    }
  }
}

TEST_P(Kernels, TakeEachFixtureInSomeDtype) {
  if (kernel().name != "naive") GTEST_SKIP() << "is for shapes of its own";
  std::size_t refused = 0, all = 0;
  for (const KernelCase& one : cases_of(kernel(), PLUMBLINE_SUITES "/" + kernel().op + ".json")) {
    ++all;
    if (one.refused.empty()) continue;
    ++refused;
    std::printf("not taken: %s %s: %s\n", kernel().op.c_str(), one.name.c_str(),
                one.refused.c_str());
  }
  EXPECT_LT(refused * 2, all) << "a kernel that takes half of what there is";
}

std::string bytes_of(const Trial& trial) {
  std::string all;
  for (const StoredTensor& tensor : trial.results)
    all.append(reinterpret_cast<const char*>(tensor.data),
               static_cast<std::size_t>(count_of(tensor.shape)) * size_of(tensor.dtype));
  return all;
}

TEST_P(Kernels, HaveOneResultInEveryOrder) {
  if (!kernel().deterministic) GTEST_SKIP() << "adds by atomics";
  const KernelCase one = odd_cases().front();
  std::string first;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host::Options options;
    options.seed = seed, options.late = seed % 2 == 0, options.wander = false;
    options.shadow = seed <= 2;
    Trials trials(kernel(), one);
    const std::string bytes = bytes_of(trials.run(options));
    if (seed == 1) first = bytes;
    EXPECT_EQ(bytes == first, true) << one.name << ", seed " << seed;
  }
}

TEST_P(Kernels, NeedEverySynchronisation) {
  // A site is needed if its loss is reported in some case, in both schedules.
  std::map<std::string, host::Removal> sites;
  for (const KernelCase& one : odd_cases()) {
    const auto run = [&](host::Stream& stream) {
      Bench bench(stream.options());
      kernel().run(bench, one.problem, one.backward);
      const std::string crime = bench.finish();
      stream.machine().sites = bench.stream().sites();
      return crime;
    };
    for (const host::Removal& removal : host::leave_out_each(run, {.seed = 3})) {
      const auto [at, fresh] =
          sites.emplace(text(removal.site.at) + " " + removal.site.kind, removal);
      if (!fresh && !at->second.reported()) at->second = removal;
    }
  }
  std::vector<host::Removal> list;
  for (const auto& [name, removal] : sites) list.push_back(removal);
  std::printf("%s", host::table(list).c_str());
  for (const host::Removal& removal : list)
    EXPECT_TRUE(removal.reported()) << host::table({removal});
}

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> list;
  for (const Kernel& kernel : kernels()) list.push_back(&kernel);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Table, Kernels, testing::ValuesIn(all_kernels()), [](const auto& one) {
  return one.param->op + "_" + one.param->name;
});

}  // namespace
}  // namespace plumbline
