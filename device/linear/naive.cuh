// device/linear/naive.cuh
//
// A projection and its gradients as three products and a column sum. Floor, n = 4096 tokens through
// V3.2's q_b (1536 → 24576) in bf16: 309 GFLOP, 290 MB: 0.39 ms of arithmetic at 790 TFLOP/s, 0.07
// ms of memory at 4.3 TB/s.
//
// Columns are counted inside the slice: c = g·(end − begin) + o − begin. The slice costs an index,
// not a copy, and the two halves of a split projection need no product that is split afterwards.
#pragma once
#include "device/pieces/column_sums.cuh"
#include "device/pieces/product.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

struct Slice {
  std::int64_t begin, width;  // of the last axis
  DEVICE std::int64_t group(std::int64_t c) const { return c / width; }
  DEVICE std::int64_t column(std::int64_t c) const { return begin + c % width; }
};

// y = x·W + bias; T is what tensors are stored in, Y what y is stored in.
template <class T, class Y> struct LinearTerms {
  using Element = T;
  static constexpr bool along_depth = true, along_columns = true;
  struct Args {
    View<const T, 2> x;       // n I
    View<const T, 3> weight;  // I G O
    View<const T, 2> bias;    // G O
    View<Y, 3> y;             // n G o
    Slice slice;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.x.extent(0); }
  DEVICE static std::int64_t depth(const Args& p) { return p.x.extent(1); }
  DEVICE static std::int64_t columns(const Args& p) { return p.y.extent(1) * p.slice.width; }
  DEVICE static T a(const Args& p, std::int64_t n, std::int64_t i) { return p.x(n, i); }
  DEVICE static T b(const Args& p, std::int64_t i, std::int64_t c) {
    return p.weight(i, p.slice.group(c), p.slice.column(c));
  }
  DEVICE static void store_one(const Args& p, std::int64_t n, std::int64_t c, float sum) {
    const std::int64_t g = p.slice.group(c), o = p.slice.column(c);
    if (p.bias.exists()) sum += number(T(p.bias(g, o)));
    p.y(n, g, o - p.slice.begin) = Stored<Y>::of(sum);
  }
  DEVICE static void store(const Args& p, std::int64_t n, std::int64_t c, float first,
                           float second) {
    store_one(p, n, c, first);
    if (c + 1 < columns(p)) store_one(p, n, c + 1, second);
  }
};

// dx[n, i] = Σ_c dy[n, c]·W[i, c]
template <class T> struct LinearInputTerms {
  using Element = T;
  static constexpr bool along_depth = true, along_columns = false;
  struct Args {
    View<const T, 3> dy;      // n G o
    View<const T, 3> weight;  // I G O
    View<float, 2> dx;        // n I
    Slice slice;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.dx.extent(0); }
  DEVICE static std::int64_t depth(const Args& p) { return p.dy.extent(1) * p.slice.width; }
  DEVICE static std::int64_t columns(const Args& p) { return p.dx.extent(1); }
  DEVICE static T a(const Args& p, std::int64_t n, std::int64_t c) {
    return p.dy(n, p.slice.group(c), p.slice.column(c) - p.slice.begin);
  }
  DEVICE static T b(const Args& p, std::int64_t c, std::int64_t i) {
    return p.weight(i, p.slice.group(c), p.slice.column(c));
  }
  DEVICE static void store(const Args& p, std::int64_t n, std::int64_t i, float first,
                           float second) {
    p.dx(n, i) = first;
    if (i + 1 < columns(p)) p.dx(n, i + 1) = second;
  }
};

// dW[i, g, o] = Σ_n x[n, i]·dy[n, g, o] in the slice, 0 outside.
template <class T> struct LinearWeightTerms {
  using Element = T;
  static constexpr bool along_depth = false, along_columns = true;
  struct Args {
    View<const T, 2> x;      // n I
    View<const T, 3> dy;     // n G o
    View<float, 3> dweight;  // I G O
    Slice slice;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.dweight.extent(0); }
  DEVICE static std::int64_t depth(const Args& p) { return p.x.extent(0); }
  // All columns of the weight: those outside the slice get their zeros here.
  DEVICE static std::int64_t columns(const Args& p) {
    return p.dweight.extent(1) * p.dweight.extent(2);
  }
  DEVICE static T a(const Args& p, std::int64_t i, std::int64_t n) { return p.x(n, i); }
  DEVICE static T b(const Args& p, std::int64_t n, std::int64_t j) {
    const std::int64_t o = j % p.dweight.extent(2) - p.slice.begin;
    if (o < 0 || o >= p.slice.width) return Zero<T>::value();
    return p.dy(n, j / p.dweight.extent(2), o);
  }
  DEVICE static void store(const Args& p, std::int64_t i, std::int64_t j, float first,
                           float second) {
    const std::int64_t width = p.dweight.extent(2);
    p.dweight(i, j / width, j % width) = first;
    if (j + 1 < columns(p)) p.dweight(i, (j + 1) / width, (j + 1) % width) = second;
  }
};

// dbias[g, o] = Σ_n dy[n, g, o] in the slice, 0 outside.
template <class T> struct LinearBiasTerms {
  struct Args {
    View<const T, 3> dy;  // n G o
    std::int64_t width;   // O
    Slice slice;
    View<float, 2> parts;
  };
  DEVICE static std::int64_t rows(const Args& p) { return p.dy.extent(0); }
  DEVICE static float term(const Args& p, std::int64_t n, std::int64_t j) {
    const std::int64_t o = j % p.width - p.slice.begin;
    if (o < 0 || o >= p.slice.width) return 0.f;
    return number(T(p.dy(n, j / p.width, o)));
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
