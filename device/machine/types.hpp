// device/machine/types.hpp
//
// What both sides of the machine share: number formats, layouts of tiles, descriptors. Pure
// arithmetic on integers; nothing here touches memory.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define DEVICE __device__ __forceinline__
#define BOTH __host__ __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#else
#define DEVICE inline
#define BOTH inline
#define UNROLL
#endif

// One text, two machines: kernels live in `namespace plumbline::device::PLUMBLINE_SIDE`, so that a
// program that holds both sides never has two functions of one mangled name.
#ifdef __CUDACC__
#define PLUMBLINE_SIDE gpu
#else
#define PLUMBLINE_SIDE host
#endif

// Text that needs sm_90a stands in #if PLUMBLINE_SM90. The host machine has everything.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define PLUMBLINE_SM90 1
#else
#define PLUMBLINE_SM90 0
#endif

namespace plumbline::device::PLUMBLINE_SIDE {

struct bf16 {
  std::uint16_t bits;
};

// A dimension of blocks. 2^31 - 1 along x, 65535 along y and z, as CUDA has it.
struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
};

// 4, 8 or 16 bytes on their way between memory and registers.
template <int Bytes> struct alignas(Bytes) Words {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "memory is accessed by 4, 8 or 16 bytes");
  std::uint32_t word[Bytes / 4];
};

// ---- layouts: where element (row, column) of an R x C tile lies ---------------------------------

struct RowMajor {
  static constexpr int alignment = 16;
  template <int R, int C> BOTH static constexpr int size() { return R * C; }
  template <int R, int C> BOTH static constexpr int offset(int row, int column) {
    return row * C + column;
  }
};

// Rows `Pad` elements apart: with 16 bytes of padding the eight rows of an ldmatrix fall into
// different banks.
template <int Pad> struct Padded {
  static constexpr int alignment = 16;
  template <int R, int C> BOTH static constexpr int size() { return R * (C + Pad); }
  template <int R, int C> BOTH static constexpr int offset(int row, int column) {
    return row * (C + Pad) + column;
  }
};

// What TMA writes and wgmma reads: panels of 64 two-byte columns, one below another; within a panel
// the 16-byte chunks of a 128-byte row are permuted by row mod 8.
struct Swizzle128 {
  static constexpr int alignment = 1024;
  template <int R, int C> BOTH static constexpr int size() {
    static_assert(C % 64 == 0, "a panel has 64 columns");
    static_assert(R % 8 == 0, "the permutation repeats every 8 rows");
    return R * C;
  }
  template <int R, int C> BOTH static constexpr int offset(int row, int column) {
    return (column / 64 * R + row) * 64 + ((column % 64 / 8) ^ (row % 8)) * 8 + column % 8;
  }
};

// ---- wgmma matrix descriptors -------------------------------------------------------------------

// 128-byte swizzle; address and strides in bytes, all multiples of 16. The host's tensor core reads
// memory through these bits alone.
struct Descriptor {
  std::uint64_t bits;
};
BOTH constexpr Descriptor describe(std::uint32_t address, std::uint32_t leading,
                                   std::uint32_t stride) {
  return {std::uint64_t((address & 0x3FFFF) >> 4) | std::uint64_t(leading >> 4) << 16 |
          std::uint64_t(stride >> 4) << 32 | std::uint64_t(1) << 62};
}

// The k-th 16-bit number of a register that holds two.
BOTH constexpr bf16 half_of(std::uint32_t pair, int k) {
  return {static_cast<std::uint16_t>(pair >> (16 * k))};
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
