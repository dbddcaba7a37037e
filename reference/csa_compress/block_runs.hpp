// reference/csa_compress/block_runs.hpp: blocks that are worked on together, so that a weight is converted once for
// about sixteen tokens.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/linear/contract.hpp"

namespace plumbline::csa_compress {

inline std::int64_t blocks_of_a_run(std::int64_t m) {
  return std::max<std::int64_t>(1, rows_of_a_block / m);
}

struct BlockRun {  // blocks [first, last) of one batch
  std::int64_t b, first, last;
};

// The blocks of [begin, end), counted over all batches, that `take(b, j)`, in runs of at most `most`.
template <class Take> std::vector<BlockRun> block_runs(std::int64_t begin, std::int64_t end,
                                                       std::int64_t count, std::int64_t most,
                                                       Take take) {
  std::vector<BlockRun> runs;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t b = i / count, j = i % count;
    if (!take(b, j)) continue;
    if (runs.empty() || runs.back().b != b || runs.back().last != j ||
        j - runs.back().first == most)
      runs.push_back({b, j, j});
    runs.back().last = j + 1;
  }
  return runs;
}

}  // namespace plumbline::csa_compress
