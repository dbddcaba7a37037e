// device/machine/host/operations.hpp: threads, meetings, wide accesses, reductions, cp.async.
//
// Each has the text it has on the GPU, plus a hidden last parameter: the line it stands on.
#pragma once
#include <cstring>

#include "device/machine/host/access.hpp"
#include "device/machine/host/numbers.hpp"

namespace plumbline::device::host {

// ---- threads and their meetings -----------------------------------------------------------------

inline int thread() { return static_cast<int>(Machine::me().clock.id); }
inline int lane() { return thread() % 32; }
inline int warp() { return thread() / 32; }
inline int of_axis(const Grid& grid, int axis) {
  return static_cast<int>(axis == 0 ? grid.x : axis == 1 ? grid.y : grid.z);
}
inline int block(int axis = 0) { return of_axis(Machine::current().block, axis); }
inline int blocks(int axis = 0) { return of_axis(Machine::current().grid, axis); }

inline void sync_block(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("sync_block", at)) m.sync(0, m.threads, true, at);
}
inline void sync_warp(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("sync_warp", at)) m.sync_warp(at);
}
inline void sync_named(int id, int threads, Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("sync_named", at)) m.sync(id, threads, true, at);
}
inline void arrive_named(int id, int threads, Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("arrive_named", at)) m.sync(id, threads, false, at);
}

// Lanes exchange registers; memory is not ordered by it.
template <class T, class From> T exchange(T value, const char* what, From from, Where at) {
  struct Part {
    T in, out;
  } mine{value, value};
  Machine& m = Machine::current();
  if (void** const parts = m.meet(m.warp(), 32, lane(), &mine, what, at)) {
    for (int i = 0; i < 32; ++i)
      static_cast<Part*>(parts[i])->out = static_cast<Part*>(parts[from(i) & 31])->in;
    m.dismiss(m.warp());
  }
  return mine.out;
}
template <class T> T shuffle_xor(T value, int mask, Where at = Where::here()) {
  return exchange(
      value, "shuffle_xor", [mask](int i) { return i ^ mask; }, at);
}
template <class T> T shuffle(T value, int from, Where at = Where::here()) {
  struct Part {
    T in, out;
    int from;
  } mine{value, value, from};
  Machine& m = Machine::current();
  if (void** const parts = m.meet(m.warp(), 32, lane(), &mine, "shuffle", at)) {
    const auto part = [&](int i) { return static_cast<Part*>(parts[i]); };
    for (int i = 0; i < 32; ++i) part(i)->out = part(part(i)->from & 31)->in;
    m.dismiss(m.warp());
  }
  return mine.out;
}
inline std::uint32_t ballot(bool p, Where at = Where::here()) {
  std::uint32_t mine = p;
  Machine& m = Machine::current();
  if (void** const parts = m.meet(m.warp(), 32, lane(), &mine, "ballot", at)) {
    std::uint32_t all = 0;
    for (int i = 0; i < 32; ++i) all |= *static_cast<std::uint32_t*>(parts[i]) << i;
    for (int i = 0; i < 32; ++i) *static_cast<std::uint32_t*>(parts[i]) = all;
    m.dismiss(m.warp());
  }
  return mine;
}

// The same number in all lanes: a butterfly of five exchanges, whose order of additions is fixed.
template <class T> T warp_sum(T value, Where at = Where::here()) {
  for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask, at);
  return value;
}
template <class T> T warp_maximum(T value, Where at = Where::here()) {
  for (int mask = 16; mask > 0; mask /= 2) value = maximum(value, shuffle_xor(value, mask, at));
  return value;
}

// ---- wide accesses and reductions ---------------------------------------------------------------

template <int Bytes, class T> Words<Bytes> load(Ref<T>&& at) {
  at.wide(Bytes).touch(Touch::read, Bytes);
  Words<Bytes> words;
  std::memcpy(&words, at.pointer(), Bytes);
  return words;
}
template <int Bytes, class T> void store(Ref<T>&& at, Words<Bytes> words) {
  at.wide(Bytes).touch(Touch::write, Bytes);
  std::memcpy(at.pointer(), &words, Bytes);
}
inline void store_pair(Ref<bf16>&& at, std::uint32_t pair) {
  store(std::move(at), Words<4>{{pair}});
}

template <class T, class Change> T atomic(Ref<T>& at, Change change) {
  Machine::current().give_way();  // atomics of several threads come in any order
  at.touch(Touch::atomic);
  const T old = *at.pointer();
  *at.pointer() = change(old);
  return old;
}
template <class T> T atomic_add(Ref<T>&& at, std::type_identity_t<T> value) {
  return atomic(at, [&](T old) { return static_cast<T>(old + value); });
}
template <class T> void reduce_add(Ref<T>&& at, std::type_identity_t<T> value) {
  atomic(at, [&](T old) { return static_cast<T>(old + value); });
}
inline int atomic_maximum(Ref<int>&& at, int value) {
  return atomic(at, [&](int old) { return maximum(old, value); });
}
inline void reduce_add4(Ref<float>&& at, float a, float b, float c, float d) {
  at.wide(16);
  Machine::current().give_way();
  at.touch(Touch::atomic, 16);
  float* const p = at.pointer();
  p[0] += a, p[1] += b, p[2] += c, p[3] += d;
}

// ---- cp.async -----------------------------------------------------------------------------------

template <class To, class From>
void copy_async16(Ref<To>&& to, Ref<From>&& from, bool valid = true) {
  to.wide(16);
  if (valid) from.wide(16);
  Machine::current().copy_async16(to.region(), to.pointer(), from.region(), from.pointer(), valid,
                                  to.at());
}
inline void commit(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("commit", at)) m.commit();
}
template <int N> void wait_groups(Where at = Where::here()) {
  Machine& m = Machine::current();
  if (!m.left_out("wait_groups", at)) m.wait_groups(N);
}

// ---- the tensor core of a warp ------------------------------------------------------------------

inline std::uint32_t next_register_tick() { return ++Machine::me().register_tick; }

struct FragmentA {
  std::uint32_t x[4];
  std::uint32_t written = next_register_tick();  // when, for wgmma_fence
};
struct FragmentB {
  std::uint32_t x[2];
};

inline void ldmatrix4(std::uint32_t (&x)[4], Ref<bf16>&& row, Where at = Where::here()) {
  row.wide(16).touch(Touch::read, 16);
  Machine::current().ldmatrix(x, row.pointer(), false, at);
}
inline void ldmatrix4_transposed(std::uint32_t (&x)[4], Ref<bf16>&& row, Where at = Where::here()) {
  row.wide(16).touch(Touch::read, 16);
  Machine::current().ldmatrix(x, row.pointer(), true, at);
}
// Rows row..row+15 and columns column..column+15 of a bf16 tile.
template <class Tile> FragmentA load_a(Tile& tile, int row, int column, Where at = Where::here()) {
  FragmentA a;
  ldmatrix4(a.x, tile(Index(row + lane() % 16, at), Index(column + lane() / 16 * 8, at)), at);
  return a;
}
inline void mma(float (&d)[4], const FragmentA& a, const FragmentB& b, Where at = Where::here()) {
  Machine::current().mma(d, a.x, b.x, at);
}

// A strip is one meeting of the warp instead of 2 + 1 per two groups of columns; each lane is
// charged with the rows that its ldmatrix would fetch.
template <int N, class Tile> void multiply(float (&acc)[N][4], const FragmentA& a, Tile& b, int n,
                                           int k, Where at = Where::here()) {
  static_assert(N % 2 == 0, "one ldmatrix serves two groups of eight columns");
  const void* piece[N / 2];
  for (int i = 0; i < N; i += 2) {
    const auto row =
        b(Index(n + i * 8 + lane() / 16 * 8 + lane() % 8, at), Index(k + lane() / 8 % 2 * 8, at));
    row.wide(16).touch(Touch::read, 16);
    piece[i / 2] = row.pointer();
  }
  Machine::current().strip(acc[0], N, a.x, piece, false, at);
}
template <int N, class Tile> void multiply_transposed(float (&acc)[N][4], const FragmentA& a,
                                                      Tile& b, int n, int k,
                                                      Where at = Where::here()) {
  static_assert(N % 2 == 0, "one ldmatrix serves two groups of eight columns");
  const void* piece[N / 2];
  for (int i = 0; i < N; i += 2) {
    const auto row = b(Index(k + lane() % 16, at), Index(n + i * 8 + lane() / 16 * 8, at));
    row.wide(16).touch(Touch::read, 16);
    piece[i / 2] = row.pointer();
  }
  Machine::current().strip(acc[0], N, a.x, piece, true, at);
}

}  // namespace plumbline::device::host
