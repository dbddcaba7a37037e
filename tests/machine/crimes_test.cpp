// Every crime is reported, as what it is, for ten orders in the early and the late schedule; its
// honest twin never is.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/machine/crimes/copies.hpp"
#include "tests/machine/crimes/meetings.hpp"
#include "tests/machine/crimes/memory.hpp"
#include "tests/machine/crimes/tensor.hpp"

namespace plumbline::device::host {
namespace {

constexpr int orders = 10;

struct Numbers {
  std::vector<int> out = std::vector<int>(64);
  std::vector<float> in = std::vector<float>(128), sum = std::vector<float>(1);
  std::vector<bf16> matrix = std::vector<bf16>(64 * 64), target = std::vector<bf16>(64 * 64);

  Numbers() {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = 1.f / static_cast<float>(1 + i * i);
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = to_bf16(static_cast<float>(i % 9));
  }
};

template <class Kernel> std::string commit_crime(Numbers& n, int blocks, Options options) {
  Stream stream(std::move(options));
  n.sum[0] = 0;
  stream.output("out", n.out.data(), n.out.size());
  stream.input("in", n.in.data(), n.in.size());
  stream.accumulator("sum", n.sum.data(), n.sum.size());
  stream.input("matrix", n.matrix.data(), n.matrix.size());
  stream.workspace("target", n.target.data(), n.target.size());
  if constexpr (std::is_same_v<typename Kernel::Args, CrimeArgs>) {
    launch<Kernel>(stream, {blocks},
                   {{n.out.data(), {64}}, {n.in.data(), {128}}, {n.sum.data(), {1}}});
  } else {
    const View<const bf16, 2> matrix(n.matrix.data(), {64, 64});
    launch<Kernel>(stream, {blocks},
                   {{n.out.data(), {64}},
                    tensor_map<64>(matrix),
                    tensor_map<32>(matrix),
                    tensor_map<64>(View<bf16, 2>(n.target.data(), {64, 64}))});
  }
  return stream.finish();
}

// kinds: what the report may start with. Some crimes have two faces: who waits for a thread that is
// gone, and what that thread left behind.
template <template <bool> class Kernel>
void expect(const char* name, std::vector<std::string> kinds, int blocks = 1) {
  SCOPED_TRACE(name);
  Numbers numbers;
  std::string report;
  for (const bool late : {false, true})
    for (std::uint64_t seed = 1; seed <= orders; ++seed) {
      const Options options{.seed = seed, .late = late};
      EXPECT_EQ(commit_crime<Kernel<true>>(numbers, blocks, options), "") << "the honest twin";
      report = commit_crime<Kernel<false>>(numbers, blocks, options);
      bool known = false;
      for (const std::string& kind : kinds) known |= report.starts_with(kind);
      EXPECT_TRUE(known) << "seed " << seed << (late ? " late: " : " early: ") << report;
      if (!known) return;
    }
  std::printf("%-24s %s\n", name, report.c_str());
}
#define EXPECT_CRIME(Kernel, ...) expect<Kernel>(#Kernel, __VA_ARGS__)

TEST(Crimes, OfMemory) {
  EXPECT_CRIME(ReadBeforeWriters, {"RACE on shared", "UNINITIALISED shared"});
  EXPECT_CRIME(WriteBeforeReaders, {"RACE on shared"});
  EXPECT_CRIME(LanesUnordered, {"RACE on shared", "UNINITIALISED shared"});
  EXPECT_CRIME(ShuffleAsBarrier, {"RACE on shared"});
  EXPECT_CRIME(GlobalTwice, {"RACE on out"});
  EXPECT_CRIME(BlocksTwice, {"RACE between blocks on out"}, 2);
  EXPECT_CRIME(BlockReadsOthersSum, {"RACE between blocks on sum", "RACE on sum"}, 2);
  EXPECT_CRIME(AtomicThenPlain, {"RACE on shared"});
  EXPECT_CRIME(OwnAtomicHidesOthers, {"RACE on shared"});
  EXPECT_CRIME(OutsideGlobal, {"OUT OF BOUNDS: index 64"});
  EXPECT_CRIME(OutsideShared, {"OUT OF BOUNDS: index 128"});
  EXPECT_CRIME(NegativeIndex, {"OUT OF BOUNDS: index -1"});
  EXPECT_CRIME(LeavesItsRow, {"OUT OF BOUNDS: an access of 16 bytes"});
  EXPECT_CRIME(Misaligned, {"MISALIGNED access of 16 bytes"});
  EXPECT_CRIME(SharedIsNotZero, {"UNINITIALISED shared"});
  EXPECT_CRIME(OutputIsNotZero, {"UNINITIALISED out"});
  EXPECT_CRIME(Unwritten, {"UNWRITTEN output out[60]"});
}

TEST(Crimes, OfMeetings) {
  EXPECT_CRIME(DivergentBarrier, {"DIVERGENT barrier"});
  EXPECT_CRIME(BarrierNotReached, {"DEADLOCK"});
  EXPECT_CRIME(CountsDisagree, {"BARRIER 1 COUNT"});
  EXPECT_CRIME(CountTooHigh, {"DEADLOCK"});
  EXPECT_CRIME(CountOfHalfWarps, {"BARRIER 1 COUNT"});
  EXPECT_CRIME(PartialWarps, {"BARRIER 1 PARTIAL WARP"});
  EXPECT_CRIME(ArrivesTwice, {"BARRIER 1 TWICE"});
  EXPECT_CRIME(ArrivesAndReads, {"RACE on shared", "UNINITIALISED shared"});
  EXPECT_CRIME(WrongNumber, {"DEADLOCK"});
  EXPECT_CRIME(ShuffleOfHalfAWarp, {"DEADLOCK"});
  EXPECT_CRIME(LanesDoDifferentThings, {"DIVERGENT warp"});
}

TEST(Crimes, OfCopies) {
  EXPECT_CRIME(CopyNotWaited, {"RACE on shared"});
  EXPECT_CRIME(CopyNotCommitted, {"RACE on shared"});
  EXPECT_CRIME(CopyWaitedByOthersOnly, {"RACE on shared", "UNINITIALISED shared"});
  EXPECT_CRIME(OneGroupTooFew, {"RACE on shared"});
  EXPECT_CRIME(WritesUnderACopy, {"RACE on shared"});
  EXPECT_CRIME(CopiesOfOneTarget, {"RACE on shared"});
  EXPECT_CRIME(CopyOutlivesItsBlock, {"IN FLIGHT"});
  EXPECT_CRIME(SourceNotClamped, {"OUT OF BOUNDS: index 1"});
}

TEST(Crimes, OfBarriersAndBulkCopies) {
  EXPECT_CRIME(WrongParity, {"RACE on shared", "UNINITIALISED shared"});
  EXPECT_CRIME(WrongBytes, {"DEADLOCK"});
  EXPECT_CRIME(RefillBeforeRead, {"RACE on shared", "DEADLOCK"});
  EXPECT_CRIME(BarrierNotShared, {"RACE on shared", "MBARRIER used before init"});
  EXPECT_CRIME(BarrierNotPublished, {"PROXY FENCE"});
  EXPECT_CRIME(BulkOverPlainStore, {"PROXY FENCE"});
  EXPECT_CRIME(TooManyArrivals, {"MBARRIER at shared+512 OVERRUN"});
  EXPECT_CRIME(InitTwice, {"MBARRIER initialised twice"});
  EXPECT_CRIME(BulkOutlivesItsBlock, {"IN FLIGHT"});
  EXPECT_CRIME(CopiesSpeakForStores, {"RACE on shared"});
  EXPECT_CRIME(ArrivesBeforeCopied, {"RACE on shared"});
}

TEST(Crimes, OfTensorCores) {
  EXPECT_CRIME(NoProxyFence, {"PROXY FENCE"});
  EXPECT_CRIME(FenceBeforeStores, {"PROXY FENCE"});
  EXPECT_CRIME(AccumulatorTooEarly, {"ACCUMULATOR used"});
  EXPECT_CRIME(NoWgmmaFence, {"WGMMA FENCE missing: the accumulator"});
  EXPECT_CRIME(FragmentAfterFence, {"WGMMA FENCE missing: the register operand"});
  // Two faces: the product is issued before or after the store.
  EXPECT_CRIME(OperandOverwritten, {"RACE on shared", "PROXY FENCE"});
  EXPECT_CRIME(OneWarpSpeaksForFour, {"RACE on shared"});
  EXPECT_CRIME(OneProductTooFew, {"ACCUMULATOR used"});
  EXPECT_CRIME(ProductNotCommitted, {"ACCUMULATOR used"});
  EXPECT_CRIME(OperandsDiffer, {"WGMMA operands"});
  EXPECT_CRIME(HalfAWarpgroup, {"DEADLOCK", "ACCUMULATOR given up"});
  EXPECT_CRIME(DescriptorLeadsOutside, {"OUT OF BOUNDS: a descriptor", "UNINITIALISED shared+16"});
  EXPECT_CRIME(BoxOfOtherSize, {"TENSOR MAP"});
  EXPECT_CRIME(StoreWithoutFence, {"PROXY FENCE"});
  EXPECT_CRIME(StoreOverwritten, {"RACE on shared"});
  EXPECT_CRIME(StoreOutlivesItsBlock, {"IN FLIGHT"});
}

}  // namespace
}  // namespace plumbline::device::host
