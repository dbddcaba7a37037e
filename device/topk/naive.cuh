// device/topk/naive.cuh
//
// A block takes a row.
//   1. Scores become unsigned integers in the same order, and four passes of 256 counters each find,
//      digit after digit, the k-th largest of them and how many equals of it are taken.
//   2. One pass in ascending order lists what is taken: everything above, and the first equals. Places
//      come from counts of votes, never from atomics: the list is the same on every run.
//   3. The list is put in order by rank, each thread counting who is better than its key: k² / 256
//      comparisons, the price of being short. (A bitonic sort of 2048 would need 66 barriers.)
// Counters in shared memory are added to by atomics; integers, so in any order the same. Reads the
// row six times, from L2 after the first. Floor for 4096 rows of 32768 keys in f32: scores read, who
// is visible read, flags written, 1.2 GB, 0.28 ms at 4.3 TB/s.
#pragma once
#include "device/pieces/numbers.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

// Larger for better scores; 0 for NaN.
DEVICE std::uint32_t rank_of(float x) {
  if (x != x) return 0;
  if (x == 0.f) return 0x80000000u;  // both zeros
  const std::uint32_t bits = as_word(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
DEVICE int bits_in(std::uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return static_cast<int>(((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24);
}

template <class T> struct TopKRows {
  static constexpr int threads = 256, warps = threads / 32;
  struct Args {
    View<const T, 2> scores;               // rows keys
    View<const unsigned char, 2> visible;  // rows keys
    View<std::int32_t, 2> indices;         // rows k
    View<std::int32_t, 2> selected;        // rows keys
    View<std::int32_t, 2> list;            // rows k, workspace
    bool threshold;
  };
  struct Plan {
    Array<int, 256> count;
    Array<int, 2> found;  // the digit, and what remains to be taken of its equals
    Array<int, warps> above, equal;
  };
  static_assert(sizeof(Plan) == 1024 + 16 + 32 + 32, "the same on both sides");

  struct Bar {  // the k-th largest, and how many equals of it are taken
    std::uint32_t rank;
    int equals;
  };

  DEVICE static bool sees(const Args& p, std::int64_t row, std::int64_t i) {
    if (i >= p.scores.extent(1)) return false;
    if (!p.visible.exists()) return true;
    const unsigned char seen = p.visible(row, i);
    return seen != 0;
  }
  DEVICE static std::uint32_t rank_at(const Args& p, std::int64_t row, std::int64_t i) {
    return rank_of(number(T(p.scores(row, i))));
  }

  DEVICE static Bar find_bar(const Args& p, Plan& s, std::int64_t row) {
    Bar bar{0, static_cast<int>(p.indices.extent(1))};
    std::uint32_t known = 0;  // bits of the rank that are settled
    for (int shift = 24; shift >= 0; shift -= 8) {
      s.count[thread()] = 0;
      sync_block();  // counters are empty
      for (std::int64_t i = thread(); i < p.scores.extent(1); i += threads) {
        if (!sees(p, row, i)) continue;
        const std::uint32_t rank = rank_at(p, row, i);
        if ((rank & known) == bar.rank) atomic_add(s.count[int(rank >> shift & 255)], 1);
      }
      sync_block();  // everything is counted
      if (thread() == 0) {
        int digit = 255, left = bar.equals;
        for (; digit > 0; --digit) {
          const int here = s.count[digit];
          if (here >= left) break;
          left -= here;
        }
        // With fewer keys than k this ends at 0 with something left: every key is taken.
        s.found[0] = digit, s.found[1] = left;
      }
      sync_block();  // the digit is known, and the counters may be emptied
      const int digit = s.found[0];
      bar.equals = s.found[1];
      bar.rank |= static_cast<std::uint32_t>(digit) << shift;
      known |= 255u << shift;
    }
    return bar;
  }

  DEVICE static int sum_before(Array<int, warps>& counts, int end) {
    int sum = 0;
    for (int w = 0; w < end; ++w) sum += int(counts[w]);
    return sum;
  }

  DEVICE static void run(const Args& p, Plan& s) {
    const std::int64_t row = block(0), keys = p.scores.extent(1);
    const int k = static_cast<int>(p.indices.extent(1));
    const Bar bar = k > 0 ? find_bar(p, s, row) : Bar{0xFFFFFFFFu, 0};
    int above = 0, equal = 0;  // before this stretch of keys
    for (std::int64_t first = 0; first < keys; first += threads) {
      const std::int64_t i = first + thread();
      const bool seen = k > 0 && sees(p, row, i);
      const std::uint32_t rank = seen ? rank_at(p, row, i) : 0;
      const bool is_above = seen && rank > bar.rank, is_equal = seen && rank == bar.rank;
      const std::uint32_t all_above = ballot(is_above), all_equal = ballot(is_equal);
      if (lane() == 0) {
        s.above[warp()] = bits_in(all_above);
        s.equal[warp()] = bits_in(all_equal);
      }
      sync_block();  // the counts of all warps are there
      const std::uint32_t lower = (1u << lane()) - 1;
      const int before = above + sum_before(s.above, warp()) + bits_in(all_above & lower);
      const int equals = equal + sum_before(s.equal, warp()) + bits_in(all_equal & lower);
      const bool taken = is_above || (is_equal && equals < bar.equals);
      if (taken) p.list(row, before + minimum(equals, bar.equals)) = static_cast<int>(i);
      if (i < keys) p.selected(row, i) = taken || (p.threshold && is_equal) ? 1 : 0;
      above += sum_before(s.above, warps);
      equal += sum_before(s.equal, warps);
      sync_block();  // the counts have been read, and the list so far is there
    }
    const int taken = above + minimum(equal, bar.equals);
    for (int at = thread(); at < k; at += threads) {
      if (at >= taken) {
        p.indices(row, at) = -1;
        continue;
      }
      const int key = p.list(row, at);
      const std::uint32_t rank = rank_at(p, row, key);
      int place = 0;
      for (int other = 0; other < taken; ++other) {
        const std::uint32_t theirs = rank_at(p, row, int(p.list(row, other)));
        place += theirs > rank || (theirs == rank && other < at);  // the list ascends
      }
      p.indices(row, place) = key;
    }
  }
};

}  // namespace plumbline::device::PLUMBLINE_SIDE
