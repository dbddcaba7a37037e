// device/machine/machine.hpp
//
// Everything a kernel may do, on two machines: compiled by nvcc, each operation is one intrinsic or
// one line of PTX; compiled by any C++20 compiler, fibers run the same text on the host and every
// operation checks what a GPU would let pass. docs/machine.md is the lesson; this is the list.
//
// A kernel is a struct in namespace plumbline::device::PLUMBLINE_SIDE with
//   static constexpr int threads;      a multiple of 32, at most 1024
//   struct Args;                       views and numbers, at most 4 KiB
//   struct Plan;                       its shared memory: arrays, tiles, barriers
//   DEVICE static void run(const Args&, Plan&);
//   static constexpr int residency;    optional: blocks per multiprocessor to leave registers for
// and is started by launch<Kernel>(stream, Grid{x, y, z}, args), which is the same call on both
// sides.
//
//   memory      Array<T, N>[i]   Tile<T, R, C, Layout>(r, c)   View<T, Rank>(i, j, ...)
//               RowMajor, Padded<n>, Swizzle128; view.extent(d), view.exists()
//   who         thread() lane() warp() block(axis) blocks(axis)
//   meeting     sync_block() sync_warp() sync_named(id, threads) arrive_named(id, threads)
//   lanes       shuffle(v, from) shuffle_xor(v, mask) ballot(p) warp_sum(v) warp_maximum(v)
//   numbers     fast_exp2 fast_log2 fast_reciprocal fast_rsqrt fused maximum minimum
//               to_float to_bf16 pack half_of as_word as_float
//   wide        load<Bytes>(at) store(at, Words<Bytes>) store_pair(at, word)
//   reductions  atomic_add atomic_maximum(int) reduce_add reduce_add4
//   cp.async    copy_async16(to, from, valid) commit() wait_groups<N>()
//   tensor core FragmentA load_a(tile, row, column)
//               multiply(acc, a, tile, n, k)               b stored [n][k]
//               multiply_transposed(acc, a, tile, n, k)    b stored [k][n]
//               ldmatrix4, ldmatrix4_transposed, mma       the pieces of which strips are made
//   sm_90a      Barrier: init arrive arrive_expect arrive_when_copied wait
//               copy_bulk, TensorMap: copy_tile store_tile commit_stores wait_stores<N>
//               fence_barrier_init fence_async
//               Accumulator<N>, operand, operand_transposed, wgmma, wgmma_transposed,
//               wgmma_fence(registers...) wgmma_commit wgmma_wait<N>(accumulators...)
//               registers_up<N> registers_down<N>
#pragma once
#include "device/machine/types.hpp"
#ifdef __CUDACC__
#include "device/machine/gpu/gpu.hpp"
#else
#include "device/machine/host/host.hpp"
#endif
