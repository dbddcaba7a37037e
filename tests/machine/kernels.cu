// The sample kernels and the honest twins by nvcc: the same text as on the host.
#include "tests/machine/crimes/copies.hpp"
#include "tests/machine/crimes/meetings.hpp"
#include "tests/machine/crimes/memory.hpp"
#include "tests/machine/crimes/tensor.hpp"
#include "tests/machine/gather90.hpp"
#include "tests/machine/product.hpp"
#include "tests/machine/product90.hpp"

namespace plumbline::device::gpu {

#define KERNEL(...) \
  template __global__ void entry<__VA_ARGS__>(const __grid_constant__ __VA_ARGS__::Args)

KERNEL(Product<64>);
KERNEL(ReadBeforeWriters<true>);
KERNEL(WriteBeforeReaders<true>);
KERNEL(LanesUnordered<true>);
KERNEL(ShuffleAsBarrier<true>);
KERNEL(BlockReadsOthersSum<true>);
KERNEL(AtomicThenPlain<true>);
KERNEL(OwnAtomicHidesOthers<true>);
KERNEL(LeavesItsRow<true>);
KERNEL(CountTooHigh<true>);
KERNEL(ArrivesTwice<true>);
KERNEL(ArrivesAndReads<true>);
KERNEL(ShuffleOfHalfAWarp<true>);
KERNEL(CopyNotWaited<true>);
KERNEL(CopyWaitedByOthersOnly<true>);
KERNEL(OneGroupTooFew<true>);
KERNEL(CopiesOfOneTarget<true>);
KERNEL(SourceNotClamped<true>);
#if PLUMBLINE_SM90
KERNEL(Product90);
KERNEL(Gather90<128>);
KERNEL(WrongParity<true>);
KERNEL(RefillBeforeRead<true>);
KERNEL(BarrierNotPublished<true>);
KERNEL(BulkOverPlainStore<true>);
KERNEL(TooManyArrivals<true>);
KERNEL(CopiesSpeakForStores<true>);
KERNEL(ArrivesBeforeCopied<true>);
KERNEL(NoProxyFence<true>);
KERNEL(NoWgmmaFence<true>);
KERNEL(FragmentAfterFence<true>);
KERNEL(OneWarpSpeaksForFour<true>);
KERNEL(OneProductTooFew<true>);
KERNEL(BoxOfOtherSize<true>);
KERNEL(StoreWithoutFence<true>);
KERNEL(StoreOverwritten<true>);
#endif

#undef KERNEL

}  // namespace plumbline::device::gpu
