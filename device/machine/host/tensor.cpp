// Products of a warp: all 32 lanes meet, the last one computes for everybody.
#include "device/machine/host/numbers.hpp"
#include "device/machine/host/products.hpp"

namespace plumbline::device::host {
namespace {

// Scratch of the emulation would overflow a fiber's stack; a strip has at most 512 columns.
constexpr int most_columns = 512;
thread_local float left[16 * 16], right[16 * most_columns], sums[16 * most_columns];

struct RowPart {
  const bf16* row;
  std::uint32_t* out;
};
struct MmaPart {
  float* d;
  const std::uint32_t *a, *b;
};
struct StripPart {
  float* acc;
  const std::uint32_t* a;
  const void* const* piece;
};

void unpack_a(int lane, const std::uint32_t* a) {
  const int row = lane / 4, column = lane % 4 * 2;
  for (int i = 0; i < 4; ++i)
    for (int h = 0; h < 2; ++h)
      left[(row + i % 2 * 8) * 16 + column + i / 2 * 8 + h] = to_float(half_of(a[i], h));
}

// Between a lane's registers and the 16 x columns accumulator.
template <class Move> void each_sum(int lane, int groups, Move move) {
  for (int g = 0; g < groups; ++g)
    for (int i = 0; i < 4; ++i)
      move(g * 4 + i, sums[(lane / 4 + i / 2 * 8) * groups * 8 + g * 8 + lane % 4 * 2 + i % 2]);
}

}  // namespace

void Machine::ldmatrix(std::uint32_t (&x)[4], const void* row, bool transposed, Where at) {
  RowPart mine{static_cast<const bf16*>(row), x};
  void** const parts = meet(warp(), 32, static_cast<int>(me_id() % 32), &mine,
                            transposed ? "ldmatrix4_transposed" : "ldmatrix4", at);
  if (!parts) return;
  const auto part = [&](int lane) { return static_cast<RowPart*>(parts[lane]); };
  for (int m = 0; m < 4; ++m)
    for (int lane = 0; lane < 32; ++lane) {
      const auto cell = [&](int r, int c) { return std::uint32_t{part(m * 8 + r)->row[c].bits}; };
      const int r = lane / 4, c = lane % 4 * 2;
      part(lane)->out[m] =
          transposed ? cell(c, r) | cell(c + 1, r) << 16 : cell(r, c) | cell(r, c + 1) << 16;
    }
  dismiss(warp());
}

void Machine::mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  Where at) {
  MmaPart mine{d, a, b};
  void** const parts = meet(warp(), 32, static_cast<int>(me_id() % 32), &mine, "mma", at);
  if (!parts) return;
  const auto part = [&](int lane) { return static_cast<MmaPart*>(parts[lane]); };
  for (int lane = 0; lane < 32; ++lane) {
    unpack_a(lane, part(lane)->a);
    for (int i = 0; i < 2; ++i)
      for (int h = 0; h < 2; ++h)
        right[(lane % 4 * 2 + i * 8 + h) * 8 + lane / 4] = to_float(half_of(part(lane)->b[i], h));
    each_sum(lane, 1, [&](int i, float& sum) { sum = part(lane)->d[i]; });
  }
  accumulate(options.products, sums, left, right, 16, 8);
  for (int lane = 0; lane < 32; ++lane)
    each_sum(lane, 1, [&](int i, float& sum) { part(lane)->d[i] = sum; });
  dismiss(warp());
}

// The pieces stand for the ldmatrix of each two groups: lane l fetched row l % 8 of matrix l / 8.
void Machine::strip(float* acc, int groups, const std::uint32_t (&a)[4], const void* const* piece,
                    bool transposed, Where at) {
  StripPart mine{acc, a, piece};
  void** const parts = meet(warp(), 32, static_cast<int>(me_id() % 32), &mine, "multiply", at);
  if (!parts) return;
  const auto part = [&](int lane) { return static_cast<StripPart*>(parts[lane]); };
  const int columns = groups * 8;
  for (int lane = 0; lane < 32; ++lane) {
    unpack_a(lane, part(lane)->a);
    each_sum(lane, groups, [&](int i, float& sum) { sum = part(lane)->acc[i]; });
    for (int g = 0; g < groups; g += 2) {
      const auto* const row = static_cast<const bf16*>(part(lane)->piece[g / 2]);
      for (int i = 0; i < 8; ++i) {
        if (transposed)
          right[lane % 16 * columns + g * 8 + lane / 16 * 8 + i] = to_float(row[i]);
        else
          right[(lane / 8 % 2 * 8 + i) * columns + g * 8 + lane / 16 * 8 + lane % 8] =
              to_float(row[i]);
      }
    }
  }
  accumulate(options.products, sums, left, right, 16, columns);
  for (int lane = 0; lane < 32; ++lane)
    each_sum(lane, groups, [&](int i, float& sum) { part(lane)->acc[i] = sum; });
  dismiss(warp());
}

}  // namespace plumbline::device::host
