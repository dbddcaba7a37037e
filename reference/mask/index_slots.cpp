#include "reference/mask/index_slots.hpp"

#include <algorithm>

#include "reference/error.hpp"

namespace plumbline {

std::string slot_name(const StoredTensor& indices, std::int64_t b, std::int64_t t,
                      std::int64_t slot) {
  const std::int64_t place[] = {b, t, slot};
  return indices.name + to_string(Index(place));
}

std::vector<IndexSlot> used_slots(const StoredTensor& indices, std::int64_t b, std::int64_t t,
                                  std::int64_t keys) {
  std::vector<IndexSlot> slots;
  for (std::int64_t slot = 0; slot < indices.size(2); ++slot) {
    const std::int64_t key = integer_at(indices, {b, t, slot});
    if (key < -1 || key >= keys) {
      throw Error(slot_name(indices, b, t, slot), std::to_string(key),
                  "-1 or a key below " + std::to_string(keys));
    }
    if (key >= 0) slots.push_back({key, slot});
  }
  std::stable_sort(slots.begin(), slots.end(),
                   [](const IndexSlot& x, const IndexSlot& y) { return x.key < y.key; });
  return slots;
}

void refuse_duplicates(const StoredTensor& indices, std::int64_t b, std::int64_t t,
                       std::span<const IndexSlot> slots, std::string_view otherwise) {
  const IndexSlot* again = nullptr;
  for (std::size_t i = 1; i < slots.size(); ++i) {
    const bool repeats = slots[i].key == slots[i - 1].key;
    if (repeats && (again == nullptr || slots[i].slot < again->slot)) again = &slots[i];
  }
  if (again == nullptr) return;
  throw Error(slot_name(indices, b, t, again->slot),
              "key " + std::to_string(again->key) + " a second time",
              "distinct keys in a real row" + std::string(otherwise));
}

}  // namespace plumbline
