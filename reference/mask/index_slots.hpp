// reference/mask/index_slots.hpp
//
// Keys that a row names by number: its slots in a tensor [B, T, k], where −1 is an empty slot, anywhere.
// Errors: a number below −1 or not below the number of keys; a key a second time, where that is not allowed.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/tensor/stored_tensor.hpp"

namespace plumbline {

struct IndexSlot {
  std::int64_t key, slot;
};

// "in.indices[0, 1, 2]", as errors name a slot.
std::string slot_name(const StoredTensor& indices, std::int64_t b, std::int64_t t,
                      std::int64_t slot);
// The row's slots that name a key: by key, and the slots of one key in their order.
std::vector<IndexSlot> used_slots(const StoredTensor& indices, std::int64_t b, std::int64_t t,
                                  std::int64_t keys);
// Of slots in that order; the error names the first slot whose key an earlier one has. `otherwise` goes on after
// what was expected.
void refuse_duplicates(const StoredTensor& indices, std::int64_t b, std::int64_t t,
                       std::span<const IndexSlot> slots, std::string_view otherwise = {});

}  // namespace plumbline
