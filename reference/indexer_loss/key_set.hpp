// reference/indexer_loss/key_set.hpp
//
// S_t, the keys of one row: the visible ones (dense), those also selected (sparse), or those named by index slots.
// They come in blocks of ascending key numbers, so that nothing over all keys need be held.
#pragma once
#include <cstdint>
#include <vector>

#include "reference/indexer_loss/loss.hpp"
#include "reference/mask/index_slots.hpp"

namespace plumbline::indexer_loss {

class KeySet {
 public:
  // Reads the row's index slots. Errors: an index ≥ the number of keys or < −1, a key named twice.
  KeySet(const Tensors& tensors, const Options& options, const Visibility& visibility,
         std::int64_t b, std::int64_t t);

  struct Block {
    std::vector<std::int64_t> keys;
    std::vector<std::int64_t>
        places;  // where the key's numbers lie in a [B, T, K] or [B, T, k] row
  };
  // The next keys after the cursor, at most `most` (0 = all). False when there are none left.
  bool next(std::int64_t& cursor, std::int64_t most, Block& block) const;
  // The same over V_t.
  bool next_visible(std::int64_t& cursor, std::int64_t most, Block& block) const;

 private:
  const Tensors& tensors_;
  const Options& options_;
  const Visibility& visibility_;
  std::int64_t b_, t_;
  std::vector<IndexSlot> slots_;  // visible named keys, ascending
};

}  // namespace plumbline::indexer_loss
