// device/machine/host/asynchronous.hpp: what sm_90 adds. Barriers, bulk copies, warpgroup products.
#pragma once
#include <exception>

#include "device/machine/host/operations.hpp"

namespace plumbline::device::host {

struct Barrier {  // mbarrier; its state lives in the machine, its word is touched like memory
  std::uint64_t word;

  void init(int count, Where at = Where::here()) {
    Machine::current().init_barrier(this, count, at);
  }
  void arrive(Where at = Where::here()) {
    Machine& m = Machine::current();
    if (!m.left_out("arrive", at)) m.arrive(this, 0, at);
  }
  void arrive_expect(int bytes, Where at = Where::here()) {
    Machine& m = Machine::current();
    if (!m.left_out("arrive_expect", at)) m.arrive(this, bytes, at);
  }
  void arrive_when_copied(Where at = Where::here()) {
    Machine& m = Machine::current();
    if (!m.left_out("arrive_when_copied", at)) m.arrive_when_copied(this, at);
  }
  void wait(int parity, Where at = Where::here()) {
    Machine& m = Machine::current();
    if (!m.left_out("wait", at)) m.wait_barrier(this, parity, at);
  }
};

inline void fence_barrier_init(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("fence_barrier_init", at)) m.fence_barrier_init();
}
inline void fence_async(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("fence_async", at)) m.fence_async();
}

template <class To, class From> void copy_bulk(Ref<To>&& to, Ref<From>&& from, int bytes,
                                               Barrier& barrier, Where at = Where::here()) {
  if (bytes <= 0 || bytes % 16)
    throw Crime("MISALIGNED bulk copy of " + std::to_string(bytes) + " bytes at " + text(at));
  to.wide(16), from.wide(16);
  std::vector<Machine::Piece> pieces;
  auto* const target = reinterpret_cast<char*>(to.pointer());
  const auto* const source = reinterpret_cast<const char*>(from.pointer());
  if (!to.region().holds(target, static_cast<std::size_t>(bytes)))
    refuse_wide(to.region(), target, bytes, true, at);
  if (!from.region().holds(source, static_cast<std::size_t>(bytes)))
    refuse_wide(from.region(), source, bytes, true, at);
  for (int i = 0; i < bytes; i += 16) pieces.push_back({&from.region(), source + i, target + i});
  Machine::current().copy_bulk(std::move(pieces), &barrier, at);
}

// A matrix and how TMA cuts it: boxes of box_rows x 64 elements, swizzled by 128 bytes.
struct TensorMap {
  char* data = nullptr;
  std::int64_t rows = 0, columns = 0, stride = 0;  // in elements of two bytes
  int box_rows = 0;

  // 16 bytes from (row, column) on, or nothing outside the matrix.
  char* chunk(std::int64_t row, std::int64_t column) const;
  void check(int box, const char* what, int column, const void* tile, Where at) const;
  Region& region() const;  // the buffer it lies in; launches copy their arguments, as for a View

 private:
  mutable Region* region_ = nullptr;
};
TensorMap make_tensor_map(char* data, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                          int box_rows);

template <int R, class T> TensorMap tensor_map(const View<T, 2>& matrix) {
  static_assert(sizeof(T) == 2, "panels have 64 columns of two bytes");
  static_assert(R <= 256, "a box has at most 256 rows");
  return make_tensor_map(
      reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(matrix.data())), matrix.extent(0),
      matrix.extent(1), matrix.stride(0), R);
}

template <class T, int R, int C> void copy_tile(Tile<T, R, C, Swizzle128>& to,
                                                const TensorMap& from, int row, int column,
                                                Barrier& barrier, Where at = Where::here()) {
  from.check(R, "copy_tile", column, &to, at);
  std::vector<Machine::Piece> pieces;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; c += 8)
      pieces.push_back({&from.region(), from.chunk(row + r, column + c),
                        to.data + Swizzle128::offset<R, C>(r, c)});
  Machine::current().copy_bulk(std::move(pieces), &barrier, at);
}
template <class T, int R, int C> void store_tile(const TensorMap& to, int row, int column,
                                                 Tile<T, R, C, Swizzle128>& from,
                                                 Where at = Where::here()) {
  to.check(R, "store_tile", column, &from, at);
  std::vector<Machine::Piece> pieces;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; c += 8)
      if (char* const chunk = to.chunk(row + r, column + c))
        pieces.push_back({&to.region(), from.data + Swizzle128::offset<R, C>(r, c), chunk});
  Machine::current().store_bulk(std::move(pieces), at);
}
inline void commit_stores(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("commit_stores", at)) m.commit_stores();
}
template <int N> void wait_stores(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("wait_stores", at)) m.wait_stores(N);
}

template <int N> void registers_up() {}
template <int N> void registers_down() {}

template <class T> std::uint32_t shared_address(Ref<T>&& x) {
  return static_cast<std::uint32_t>(reinterpret_cast<const char*>(x.pointer()) -
                                    Machine::current().shared().base());
}

// ---- the tensor core of a warpgroup -------------------------------------------------------------

template <int N> class Accumulator : public AccumulatorState {
  static_assert(N == 64 || N == 128 || N == 256, "wgmma is there for these widths");

 public:
  Accumulator() { written = next_register_tick(); }
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;
  ~Accumulator() {
    if (in_flight && !std::uncaught_exceptions())
      Machine::current().give_up("ACCUMULATOR given up in flight by thread " +
                                 std::to_string(thread()));
  }
  float& operator[](Index i) {
    check_index("an accumulator", 0, i, N / 2);
    if (in_flight)
      throw Crime("ACCUMULATOR used before wgmma_wait by thread " + std::to_string(thread()) +
                  " at " + text(i.at));
    written = next_register_tick();
    return x_[i.value];
  }
  float* registers() { return x_; }

 private:
  float x_[N / 2];
};

// 64 (or N) rows from `row` on, 16 columns from k on. Eight rows lie 1024 bytes apart.
template <class T, int R, int C>
Descriptor operand(Tile<T, R, C, Swizzle128>& tile, Index row, Index k) {
  return describe(shared_address(tile(row, k)), 16, 1024);
}
// The tile as a matrix B stored [k][n]: 16 rows from k on, all columns; panels lie R rows apart.
template <class T, int R, int C>
Descriptor operand_transposed(Tile<T, R, C, Swizzle128>& tile, Index k) {
  return describe(shared_address(tile(k, Index(0, k.at))), R * 128, 1024);
}

// One call is one place in the text, whatever it names.
inline void fence_registers(Where at) {
  Thread& self = Machine::me();
  if (!Machine::current().left_out("wgmma_fence", at)) self.register_fence = self.register_tick;
}
template <class A> void wgmma_fence(A&, Where at = Where::here()) { fence_registers(at); }
template <class A, class B> void wgmma_fence(A&, B&, Where at = Where::here()) {
  fence_registers(at);
}
template <class A, class B, class C> void wgmma_fence(A&, B&, C&, Where at = Where::here()) {
  fence_registers(at);
}

template <int N>
void wgmma(Accumulator<N>& d, Descriptor a, Descriptor b, bool add, Where at = Where::here()) {
  Machine::current().wgmma(d, d.registers(), N, nullptr, 0, a, b, add, false, at);
}
template <int N> void wgmma(Accumulator<N>& d, const FragmentA& a, Descriptor b, bool add,
                            Where at = Where::here()) {
  Machine::current().wgmma(d, d.registers(), N, a.x, a.written, {}, b, add, false, at);
}
template <int N> void wgmma_transposed(Accumulator<N>& d, Descriptor a, Descriptor b, bool add,
                                       Where at = Where::here()) {
  Machine::current().wgmma(d, d.registers(), N, nullptr, 0, a, b, add, true, at);
}
template <int N> void wgmma_transposed(Accumulator<N>& d, const FragmentA& a, Descriptor b,
                                       bool add, Where at = Where::here()) {
  Machine::current().wgmma(d, d.registers(), N, a.x, a.written, {}, b, add, true, at);
}

inline void wgmma_commit(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("wgmma_commit", at)) m.wgmma_commit(at);
}
inline void wait_for_products(std::size_t left, Where at) {
  Machine& m = Machine::current();
  if (!m.left_out("wgmma_wait", at)) m.wgmma_wait(left, at);
}
// On the GPU a wait pins the registers it names, which is ordinary code: the next product with them
// needs a fence, or ptxas puts one there (C7519).
template <int N> void wgmma_wait(Where at = Where::here()) { wait_for_products(N, at); }
template <int N, int M> void wgmma_wait(Accumulator<M>& a, Where at = Where::here()) {
  wait_for_products(N, at);
  a.written = next_register_tick();
}
template <int N, int M, int L>
void wgmma_wait(Accumulator<M>& a, Accumulator<L>& b, Where at = Where::here()) {
  wait_for_products(N, at);
  a.written = b.written = next_register_tick();
}

}  // namespace plumbline::device::host
