// device/machine/gpu/operations.hpp: memory, threads, numbers, reductions and cp.async by PTX.
#pragma once
#include <cuda_runtime.h>

#include "device/machine/types.hpp"

namespace plumbline::device::gpu {

// ---- memory -------------------------------------------------------------------------------------

template <class T, int N> struct alignas(16) Array {
  T data[N];
  DEVICE T& operator[](int i) { return data[i]; }
};

template <class T, int R, int C, class Layout = RowMajor> struct alignas(Layout::alignment) Tile {
  T data[Layout::template size<R, C>()];
  DEVICE T& operator()(int row, int column) {
    return data[Layout::template offset<R, C>(row, column)];
  }
};

// Global memory: 64-bit offsets; the last dimension is contiguous.
template <class T, int Rank> class View {
 public:
  View() = default;
  BOTH View(T* data, const std::int64_t (&extent)[Rank]) : data_(data) {
    std::int64_t step = 1;
    for (int d = Rank - 1; d >= 0; --d)
      extent_[d] = extent[d], stride_[d] = step, step *= extent[d];
  }
  BOTH View(T* data, const std::int64_t (&extent)[Rank], const std::int64_t (&stride)[Rank])
      : data_(data) {
    for (int d = 0; d < Rank; ++d) extent_[d] = extent[d], stride_[d] = stride[d];
  }
  template <class... Index> DEVICE T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank, "one index per dimension");
    const std::int64_t at[] = {static_cast<std::int64_t>(index)...};
    std::int64_t offset = at[Rank - 1];
    UNROLL
    for (int d = 0; d + 1 < Rank; ++d) offset += at[d] * stride_[d];
    return data_[offset];
  }
  BOTH std::int64_t extent(int d) const { return extent_[d]; }
  BOTH std::int64_t stride(int d) const { return stride_[d]; }
  BOTH bool exists() const { return data_ != nullptr; }
  BOTH T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::int64_t extent_[Rank] = {}, stride_[Rank] = {};
};

template <class T> DEVICE std::uint32_t shared_address(T& x) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(&x));
}

// ---- threads and their meetings -----------------------------------------------------------------

DEVICE int thread() { return static_cast<int>(threadIdx.x); }
DEVICE int lane() { return static_cast<int>(threadIdx.x & 31); }
DEVICE int warp() { return static_cast<int>(threadIdx.x >> 5); }
DEVICE int block(int axis = 0) {
  return static_cast<int>(axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : blockIdx.z);
}
DEVICE int blocks(int axis = 0) {
  return static_cast<int>(axis == 0 ? gridDim.x : axis == 1 ? gridDim.y : gridDim.z);
}

DEVICE void sync_block() { __syncthreads(); }
DEVICE void sync_warp() { __syncwarp(); }
DEVICE void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
DEVICE void arrive_named(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <class T> DEVICE T shuffle(T value, int from) { return __shfl_sync(~0u, value, from); }
template <class T> DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
DEVICE std::uint32_t ballot(bool p) { return __ballot_sync(~0u, p); }

// ---- numbers ------------------------------------------------------------------------------------

DEVICE float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float fast_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float fast_rsqrt(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }

// NaN wins, so that poison and mistakes survive a running maximum.
DEVICE float maximum(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
DEVICE float minimum(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
DEVICE int maximum(int a, int b) { return a > b ? a : b; }
DEVICE int minimum(int a, int b) { return a < b ? a : b; }

DEVICE std::uint32_t as_word(float x) { return __float_as_uint(x); }
DEVICE float as_float(std::uint32_t x) { return __uint_as_float(x); }
DEVICE float to_float(bf16 x) { return as_float(static_cast<std::uint32_t>(x.bits) << 16); }
DEVICE std::uint32_t pack(float low, float high) {
  std::uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
DEVICE bf16 to_bf16(float x) { return half_of(pack(x, 0.f), 0); }

// The same number in all lanes: a butterfly of five exchanges, whose order of additions is fixed.
template <class T> DEVICE T warp_sum(T value) {
  for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}
template <class T> DEVICE T warp_maximum(T value) {
  for (int mask = 16; mask > 0; mask /= 2) value = maximum(value, shuffle_xor(value, mask));
  return value;
}

// ---- wide accesses and reductions ---------------------------------------------------------------

template <int Bytes, class T> DEVICE Words<Bytes> load(T& at) {
  return *reinterpret_cast<const Words<Bytes>*>(&at);
}
template <int Bytes, class T> DEVICE void store(T& at, Words<Bytes> words) {
  *reinterpret_cast<Words<Bytes>*>(&at) = words;
}
DEVICE void store_pair(bf16& at, std::uint32_t pair) { store(at, Words<4>{{pair}}); }

template <class T> struct Same { using type = T; };
template <class T> DEVICE T atomic_add(T& at, typename Same<T>::type value) {
  return atomicAdd(&at, value);
}
template <class T> DEVICE void reduce_add(T& at, typename Same<T>::type value) {
  atomicAdd(&at, value);
}
DEVICE int atomic_maximum(int& at, int value) { return atomicMax(&at, value); }
// Four neighbours, 16-byte aligned, in global memory; one transaction from sm_90 on.
DEVICE void reduce_add4(float& at, float a, float b, float c, float d) {
#if PLUMBLINE_SM90
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(&at), "f"(a), "f"(b), "f"(c),
               "f"(d)
               : "memory");
#else
  float* p = &at;
  atomicAdd(p, a), atomicAdd(p + 1, b), atomicAdd(p + 2, c), atomicAdd(p + 3, d);
#endif
}

// ---- cp.async -----------------------------------------------------------------------------------

// 16 bytes; an invalid copy writes zeros and does not read its source.
template <class To, class From>
DEVICE void copy_async16(To& to, const From& from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(&from), "r"(valid ? 16 : 0)
               : "memory");
}
DEVICE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void wait_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

}  // namespace plumbline::device::gpu
