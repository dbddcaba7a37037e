// The honest twins and the sample kernels on a GPU with sm_90: what the machine assumes of the
// hardware, run once where there is one. Prints a line per kernel; 0 if all is as on the host,
// 77 (skipped) without such a GPU.
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/machine/crimes/copies.hpp"
#include "tests/machine/crimes/meetings.hpp"
#include "tests/machine/crimes/memory.hpp"
#include "tests/machine/crimes/tensor.hpp"
#include "tests/machine/gather90.hpp"
#include "tests/machine/product.hpp"
#include "tests/machine/product90.hpp"

namespace plumbline::device::gpu {

int failures = 0;

// A vector with a copy on the device. Outputs start as poison, as on the host.
template <class T> struct Both {
  std::vector<T> host;
  T* device = nullptr;

  explicit Both(std::vector<T> values) : host(std::move(values)) {
    cudaMalloc(&device, bytes());
    cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice);
  }
  ~Both() { cudaFree(device); }
  std::size_t bytes() const { return host.size() * sizeof(T); }
  void fetch() { cudaMemcpy(host.data(), device, bytes(), cudaMemcpyDeviceToHost); }
};
template <class T> std::vector<T> poisoned(std::size_t count) {
  std::vector<T> out(count);
  constexpr unsigned char pattern[] = {0xF7, 0x7F};
  for (std::size_t i = 0; i < count * sizeof(T); ++i)
    reinterpret_cast<unsigned char*>(out.data())[i] = pattern[i % 2];
  return out;
}

std::uint16_t bits_of(float x) {  // of a small integer, which bf16 holds exactly
  std::uint32_t u;
  std::memcpy(&u, &x, 4);
  return static_cast<std::uint16_t>(u >> 16);
}
float value_of(bf16 x) {
  const std::uint32_t u = std::uint32_t{x.bits} << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
std::vector<bf16> small_integers(std::size_t count, std::size_t step, std::size_t range) {
  std::vector<bf16> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = {bits_of(static_cast<float>(i * step % 101 % range) - static_cast<float>(range / 2))};
  return out;
}

void report(const char* name, Stream& stream, bool right) {
  stream.check(cudaStreamSynchronize(stream.handle()));
  const bool good = !stream.failed() && right;
  failures += !good;
  std::printf("%-24s %s\n", name,
              stream.failed() ? stream.error().c_str()
              : right         ? "right"
                              : "WRONG");
}

template <class Kernel> void twin(const char* name, int blocks = 1) {
  std::vector<float> numbers(128);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1.f / static_cast<float>(1 + i * i);
  Both<int> out(poisoned<int>(64));
  Both<float> in(numbers), sum(std::vector<float>(1));
  Both<bf16> matrix(small_integers(64 * 64, 7, 9)), target(poisoned<bf16>(64 * 64));
  Stream stream;
  if constexpr (requires { Kernel::Args::sum; }) {
    launch<Kernel>(stream, {blocks}, {{out.device, {64}}, {in.device, {128}}, {sum.device, {1}}});
  } else {
    const View<const bf16, 2> source(matrix.device, {64, 64});
    launch<Kernel>(stream, {blocks},
                   {{out.device, {64}},
                    tensor_map<64>(source),
                    tensor_map<32>(source),
                    tensor_map<64>(View<bf16, 2>(target.device, {64, 64}))});
  }
  stream.check(cudaStreamSynchronize(stream.handle()));
  out.fetch();
  bool written = true;
  for (const int x : out.host) written &= x != poisoned<int>(1)[0];
  report(name, stream, written);
}
#define TWIN(Kernel, ...) twin<Kernel<true>>(#Kernel __VA_OPT__(, ) __VA_ARGS__)

void product() {
  constexpr int rows = 70, columns = 100, depth = 88;
  Both<bf16> a(small_integers(rows * depth, 5, 7)), b(small_integers(columns * depth, 3, 5));
  Both<float> c(poisoned<float>(rows * columns)), total(std::vector<float>(1));
  Stream stream;
  launch<Product<64>>(stream, {(rows + 31) / 32, (columns + 63) / 64},
                      {{a.device, {rows, depth}},
                       {b.device, {columns, depth}},
                       {c.device, {rows, columns}},
                       {total.device, {1}}});
  stream.check(cudaStreamSynchronize(stream.handle()));
  c.fetch(), total.fetch();
  bool right = true;
  float sum = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      float exact = 0;
      for (int k = 0; k < depth; ++k)
        exact += value_of(a.host[i * depth + k]) * value_of(b.host[j * depth + k]);
      right &= c.host[i * columns + j] == exact, sum += exact;
    }
  report("Product", stream, right && total.host[0] == sum);
}

void product90() {
  constexpr int depth = 320;
  Both<bf16> a(small_integers(64 * depth, 5, 3)), b(small_integers(64 * depth, 3, 3));
  Both<bf16> c(poisoned<bf16>(64 * 64));
  Stream stream;
  launch<Product90>(stream, {1},
                    {tensor_map<64>(View<const bf16, 2>(a.device, {64, depth})),
                     tensor_map<64>(View<const bf16, 2>(b.device, {64, depth})),
                     tensor_map<64>(View<bf16, 2>(c.device, {64, 64})), depth});
  stream.check(cudaStreamSynchronize(stream.handle()));
  c.fetch();
  bool right = true;
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      float exact = 0;
      for (int k = 0; k < depth; ++k)
        exact += value_of(a.host[i * depth + k]) * value_of(b.host[j * depth + k]);
      right &= value_of(c.host[i * 64 + j]) == exact;  // below 256, so exact in bf16
    }
  report("Product90", stream, right);
}

void gather90() {
  constexpr int queries = 2, heads = 64, dim = 128, rows = 100, slots = 230;
  std::vector<int> chosen(queries * slots);
  for (int i = 0; i < queries * slots; ++i)
    chosen[i] = i % 5 == 0 || (i >= slots && i < slots + 64) ? -1 : i * 37 % rows;
  Both<bf16> query(small_integers(queries * heads * dim, 5, 3)),
      pool(small_integers(rows * dim, 7, 3));
  Both<int> index(chosen);
  Both<float> out(poisoned<float>(queries * heads * dim));
  Stream stream;
  launch<Gather90<dim>>(stream, {queries},
                        {{query.device, {queries, heads, dim}},
                         {pool.device, {rows, dim}},
                         {index.device, {queries, slots}},
                         {out.device, {queries, heads, dim}}});
  stream.check(cudaStreamSynchronize(stream.handle()));
  out.fetch();
  bool right = true;
  for (int t = 0; t < queries; ++t)
    for (int h = 0; h < heads; ++h) {
      std::vector<float> exact(dim);
      for (int slot = 0; slot < slots; ++slot) {
        const int row = index.host[t * slots + slot];
        float score = 0;
        for (int d = 0; d < dim && row >= 0; ++d)
          score +=
              value_of(query.host[(t * heads + h) * dim + d]) * value_of(pool.host[row * dim + d]);
        for (int d = 0; d < dim && row >= 0; ++d)
          exact[d] += score * value_of(pool.host[row * dim + d]);
      }
      for (int d = 0; d < dim; ++d) right &= out.host[(t * heads + h) * dim + d] == exact[d];
    }
  report("Gather90", stream, right);
}

int run() {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess || device.major != 9) {
    std::printf("no GPU with sm_90 here\n");
    return 77;
  }
  std::printf("on %s\n", device.name);
  product(), product90(), gather90();
  TWIN(ReadBeforeWriters), TWIN(WriteBeforeReaders), TWIN(LanesUnordered), TWIN(ShuffleAsBarrier);
  TWIN(GlobalTwice), TWIN(BlocksTwice, 2), TWIN(AtomicThenPlain), TWIN(OwnAtomicHidesOthers);
  TWIN(LeavesItsRow), TWIN(SharedIsNotZero), TWIN(OutputIsNotZero);
  TWIN(CountTooHigh), TWIN(PartialWarps), TWIN(ArrivesTwice), TWIN(ArrivesAndReads);
  TWIN(ShuffleOfHalfAWarp), TWIN(LanesDoDifferentThings);
  TWIN(CopyNotWaited), TWIN(CopyWaitedByOthersOnly), TWIN(OneGroupTooFew), TWIN(WritesUnderACopy);
  TWIN(CopiesOfOneTarget), TWIN(SourceNotClamped);
  TWIN(WrongParity), TWIN(WrongBytes), TWIN(RefillBeforeRead), TWIN(BarrierNotShared);
  TWIN(BarrierNotPublished), TWIN(BulkOverPlainStore), TWIN(TooManyArrivals),
      TWIN(CopiesSpeakForStores);
  TWIN(ArrivesBeforeCopied);
  TWIN(NoProxyFence), TWIN(FenceBeforeStores), TWIN(AccumulatorTooEarly), TWIN(NoWgmmaFence);
  TWIN(FragmentAfterFence), TWIN(OperandOverwritten), TWIN(OneWarpSpeaksForFour),
      TWIN(OneProductTooFew);
  TWIN(ProductNotCommitted), TWIN(OperandsDiffer), TWIN(DescriptorLeadsOutside),
      TWIN(BoxOfOtherSize);
  TWIN(StoreWithoutFence), TWIN(StoreOverwritten), TWIN(StoreOutlivesItsBlock);
  return failures ? 1 : 0;
}
#undef TWIN

}  // namespace plumbline::device::gpu

int main() { return plumbline::device::gpu::run(); }
