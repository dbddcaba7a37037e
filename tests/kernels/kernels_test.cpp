// Every kernel of the table on the host machine: right by its contract in both schedules and all
// arithmetics, the same bits in every order where that is claimed, and no synchronisation that it
// does not need or whose loss would go unnoticed.
#include <gtest/gtest.h>

#include <map>

#include "device/csa_compress/launch.hpp"
#include "device/indexer_scores/launch.hpp"
#include "device/layer_norm/launch.hpp"
#include "device/linear/launch.hpp"
#include "device/machine/host/removals.hpp"
#include "device/mla_projection/launch.hpp"
#include "device/rms_norm/launch.hpp"
#include "device/rope/launch.hpp"
#include "device/topk/launch.hpp"
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
          << kernel().op << " " << kernel().name << " " << one.name << ", " << describe(options)
          << ": " << trial.verdict() << " " << trial.reason();
    }
  }
}

class NaiveKernels : public Kernels {};  // a fast one is for shapes of its own
TEST_P(NaiveKernels, TakeEachFixtureInSomeDtype) {
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

class DeterministicKernels : public Kernels {};  // others add by atomics
TEST_P(DeterministicKernels, HaveOneResultInEveryOrder) {
  const KernelCase one = odd_cases().front();
  std::string first;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    host::Options options;
    options.seed = seed, options.late = seed % 2 == 0, options.wander = false;
    options.shadow = seed <= 2;
    Trials trials(kernel(), one);
    const std::string bytes = bytes_of(trials.run(options).results);
    if (seed == 1) first = bytes;
    EXPECT_EQ(bytes == first, true) << one.name << ", seed " << seed;
  }
}

TEST_P(Kernels, NeedEverySynchronisation) {
  // A site is needed if its loss is reported in some case, in both schedules.
  std::map<std::string, host::Removal> sites;
  for (const KernelCase& one : odd_cases()) {
    const auto run = [&](host::Stream& stream) {
      Bench bench(KernelMachine{stream.options()});
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

// ---- the judge itself ----------------------------------------------------------------------------

// linear, with something done to what it computed.
Trial trial_of(const std::function<void(Bench&)>& harm) {
  Kernel kernel = *kernels_of("linear").front();
  const auto run = kernel.run;
  kernel.run = [&](Bench& bench, const Problem& problem, bool backward) {
    run(bench, problem, backward);
    harm(bench);
  };
  const std::vector<KernelCase> cases = cases_of(kernel, "");
  return Trials(kernel, cases.front()).run(machine_number(0));
}
float* numbers_of(const Bench& bench, const std::string& name) {
  for (const StoredTensor& tensor : bench.results()) {
    if (tensor.name == name) return reinterpret_cast<float*>(const_cast<std::byte*>(tensor.data));
  }
  return nullptr;
}

TEST(Trial, PassesAnHonestKernel) {
  EXPECT_TRUE(trial_of([](Bench&) {}).passed());
}
TEST(Trial, SeesOneWrongNumberInOneGradient) {
  const Trial trial = trial_of([](Bench& bench) { numbers_of(bench, "grad.weight")[3] *= 1.001f; });
  EXPECT_FALSE(trial.passed());
  EXPECT_EQ(trial.verdict(), "FAIL");
  EXPECT_NE(trial.reason().find("grad.weight[0, 0, 3]"), std::string::npos) << trial.reason();
}
TEST(Trial, SeesAResultThatIsMissing) {
  Kernel kernel = *kernels_of("linear").front();
  const auto run = kernel.run;
  kernel.run = [&](Bench& bench, const Problem& problem, bool) { run(bench, problem, false); };
  const std::vector<KernelCase> cases = cases_of(kernel, "");
  const Trial trial = Trials(kernel, cases.front()).run(machine_number(0));
  EXPECT_EQ(trial.verdict(), "INCOMPLETE");
}
TEST(Trial, SeesAResultThatNobodyWrote) {
  const Trial trial = trial_of([](Bench& bench) { bench.gradient("nothing", {2}); });
  EXPECT_EQ(trial.verdict(), "CRIME");
  EXPECT_NE(trial.reason().find("UNWRITTEN output grad.nothing"), std::string::npos);
}

TEST(Launchers, SayWhatIsMissing) {
  const auto refused = [](auto launcher, const auto& args) {
    host::Stream stream;
    launcher(stream, args);
    return stream.error();
  };
  EXPECT_EQ(refused(host::linear, device::Linear{}), "linear: no x or no weight");
  device::Linear slice;
  slice.width = 4, slice.begin = 3, slice.end = 5;
  EXPECT_EQ(refused(host::linear, slice), "linear: a slice outside the weight's columns");
  EXPECT_NE(refused(host::rms_norm, device::RmsNorm{}), "");
  EXPECT_NE(refused(host::layer_norm, device::LayerNorm{}), "");
  EXPECT_NE(refused(host::rope, device::Rope{}), "");
  EXPECT_NE(refused(host::topk, device::TopK{}), "");
  EXPECT_NE(refused(host::indexer_scores, device::IndexerScores{}), "");
  EXPECT_NE(refused(host::csa_compress, device::CsaCompress{}), "");
  EXPECT_NE(refused(host::mla_projection, device::MlaProjection{}), "");
}

template <class Holds> auto kernels_that(Holds holds) {
  std::vector<const Kernel*> list;
  for (const Kernel& kernel : kernels()) {
    if (holds(kernel)) list.push_back(&kernel);
  }
  return testing::ValuesIn(list);
}
std::string name_of_test(const testing::TestParamInfo<const Kernel*>& one) {
  return one.param->op + "_" + one.param->name;
}
INSTANTIATE_TEST_SUITE_P(Table, Kernels, kernels_that([](const Kernel&) { return true; }),
                         name_of_test);
INSTANTIATE_TEST_SUITE_P(Table, NaiveKernels,
                         kernels_that([](const Kernel& one) { return one.name == "naive"; }),
                         name_of_test);
INSTANTIATE_TEST_SUITE_P(Table, DeterministicKernels,
                         kernels_that([](const Kernel& one) { return one.deterministic; }),
                         name_of_test);

}  // namespace
}  // namespace plumbline
