// device/machine/gpu/wgmma.hpp: the tensor core of a warpgroup, m64nNk16 in bf16 with f32
// accumulators, N = 64, 128, 256.
//
// Of the 64 x N accumulator, thread t of the warpgroup holds
//   (t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8,  i / 4 * 8 + t % 4 * 2 + i % 2)   in acc[i].
//
// The instruction names every register, so its text is put together by macros: lists of operand
// numbers and of operands, 32 at a time.
#pragma once
#include "device/machine/gpu/tensor.hpp"

namespace plumbline::device::gpu {

template <int N> struct Accumulator {  // this thread's part of a 64 x N tile
  float x[N / 2];
  DEVICE float& operator[](int i) { return x[i]; }
};

// 64 (or N) rows from `row` on, 16 columns from k on. Eight rows lie 1024 bytes apart.
template <class T, int R, int C>
DEVICE Descriptor operand(Tile<T, R, C, Swizzle128>& tile, int row, int k) {
  return describe(shared_address(tile(row, k)), 16, 1024);
}
// The tile as a matrix B stored [k][n]: 16 rows from k on, all columns; panels lie R rows apart.
template <class T, int R, int C>
DEVICE Descriptor operand_transposed(Tile<T, R, C, Swizzle128>& tile, int k) {
  return describe(shared_address(tile(k, 0)), R * 128, 1024);
}

// Ordinary code for these registers stays on its side of the line.
template <int N> DEVICE void pin(Accumulator<N>& d) {
  UNROLL
  for (int i = 0; i < N / 2; ++i) asm volatile("" : "+f"(d.x[i])::"memory");
}
DEVICE void pin(FragmentA& a) {
  UNROLL
  for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a.x[i])::"memory");
}
template <int M> DEVICE void pin(FragmentA (&a)[M]) {
  UNROLL
  for (int i = 0; i < M; ++i) pin(a[i]);
}

// Before the first product, and again after ordinary code has written registers it names.
template <class... Registers> DEVICE void wgmma_fence(Registers&... registers) {
  (pin(registers), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// All but the last N groups are done; name the accumulators that may be read from here on.
template <int N, class... Registers> DEVICE void wgmma_wait(Registers&... registers) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
  (pin(registers), ...);
}

#define PLUMBLINE_NAMES_0                                                                      \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define PLUMBLINE_NAMES_32                                                                        \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54," \
  "%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define PLUMBLINE_NAMES_64                                                                        \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86," \
  "%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,"  \
  "%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,"    \
  "%126,%127"
#define PLUMBLINE_4(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])
#define PLUMBLINE_16(x, i) \
  PLUMBLINE_4(x, i), PLUMBLINE_4(x, i + 4), PLUMBLINE_4(x, i + 8), PLUMBLINE_4(x, i + 12)
#define PLUMBLINE_64 PLUMBLINE_16(d.x, 0), PLUMBLINE_16(d.x, 16)
#define PLUMBLINE_128 PLUMBLINE_64, PLUMBLINE_16(d.x, 32), PLUMBLINE_16(d.x, 48)
#define PLUMBLINE_256                                                                 \
  PLUMBLINE_128, PLUMBLINE_16(d.x, 64), PLUMBLINE_16(d.x, 80), PLUMBLINE_16(d.x, 96), \
      PLUMBLINE_16(d.x, 112)

// A by descriptor: operands after the accumulators are a, b and whether to add.
#define PLUMBLINE_WGMMA_SHARED(name, n, names, a, b, add, transposed)                             \
  DEVICE void name(Accumulator<n>& d, Descriptor left, Descriptor right, bool sum) {              \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " add                                          \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" names "}, " a \
                 ", " b ", p, 1, 1, 0, " transposed ";\n}"                                        \
                 : PLUMBLINE_##n                                                                  \
                 : "l"(left.bits), "l"(right.bits), "r"(static_cast<int>(sum))                    \
                 : "memory");                                                                     \
  }
// A in registers: four more operands.
#define PLUMBLINE_WGMMA_REGISTERS(name, n, names, a, b, add, transposed)                           \
  DEVICE void name(Accumulator<n>& d, const FragmentA& left, Descriptor right, bool sum) {         \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " add                                           \
                 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" names "}, {" a \
                 "}, " b ", p, 1, 1, " transposed ";\n}"                                           \
                 : PLUMBLINE_##n                                                                   \
                 : "r"(left.x[0]), "r"(left.x[1]), "r"(left.x[2]), "r"(left.x[3]),                 \
                   "l"(right.bits), "r"(static_cast<int>(sum))                                     \
                 : "memory");                                                                      \
  }
#define PLUMBLINE_BOTH(form, n, names, a, b, add) \
  form(wgmma, n, names, a, b, add, "0") form(wgmma_transposed, n, names, a, b, add, "1")

#define PLUMBLINE_NAMES_OF_128 PLUMBLINE_NAMES_0 PLUMBLINE_NAMES_32
#define PLUMBLINE_NAMES_OF_256 PLUMBLINE_NAMES_0 PLUMBLINE_NAMES_32 PLUMBLINE_NAMES_64
PLUMBLINE_BOTH(PLUMBLINE_WGMMA_SHARED, 64, PLUMBLINE_NAMES_0, "%32", "%33", "%34")
PLUMBLINE_BOTH(PLUMBLINE_WGMMA_SHARED, 128, PLUMBLINE_NAMES_OF_128, "%64", "%65", "%66")
PLUMBLINE_BOTH(PLUMBLINE_WGMMA_SHARED, 256, PLUMBLINE_NAMES_OF_256, "%128", "%129", "%130")
PLUMBLINE_BOTH(PLUMBLINE_WGMMA_REGISTERS, 64, PLUMBLINE_NAMES_0, "%32,%33,%34,%35", "%36", "%37")
PLUMBLINE_BOTH(PLUMBLINE_WGMMA_REGISTERS, 128, PLUMBLINE_NAMES_OF_128, "%64,%65,%66,%67", "%68",
               "%69")
PLUMBLINE_BOTH(PLUMBLINE_WGMMA_REGISTERS, 256, PLUMBLINE_NAMES_OF_256, "%128,%129,%130,%131",
               "%132", "%133")

#undef PLUMBLINE_BOTH
#undef PLUMBLINE_WGMMA_REGISTERS
#undef PLUMBLINE_WGMMA_SHARED
#undef PLUMBLINE_NAMES_OF_256
#undef PLUMBLINE_NAMES_OF_128
#undef PLUMBLINE_256
#undef PLUMBLINE_128
#undef PLUMBLINE_64
#undef PLUMBLINE_16
#undef PLUMBLINE_4
#undef PLUMBLINE_NAMES_64
#undef PLUMBLINE_NAMES_32
#undef PLUMBLINE_NAMES_0

}  // namespace plumbline::device::gpu
