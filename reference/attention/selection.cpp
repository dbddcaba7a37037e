#include "reference/attention/selection.hpp"

#include <algorithm>

#include "reference/error.hpp"

namespace plumbline::attention {
namespace {

struct Slot {
  std::int64_t key, slot;
};

std::string slot_name(const StoredTensor& tensor, std::int64_t b, std::int64_t t,
                      std::int64_t slot) {
  const std::int64_t place[] = {b, t, slot};
  return tensor.name + to_string(Index(place));
}

[[noreturn]] void refuse_hidden(const StoredTensor& tensor, std::int64_t b, std::int64_t t,
                                std::int64_t slot, std::int64_t key) {
  throw Error(slot_name(tensor, b, t, slot),
              "key " + std::to_string(key) + ", which the row does not see",
              "visible keys only (strict_selection)");
}

std::vector<std::int64_t> from_indices(const Selection& selection, const Visibility& visibility,
                                       std::int64_t b, std::int64_t t) {
  const StoredTensor& indices = selection.indices;
  std::vector<Slot> slots;
  for (std::int64_t slot = 0; slot < indices.size(2); ++slot) {
    const std::int64_t key = integer_at(indices, {b, t, slot});
    if (key < -1 || key >= visibility.keys()) {
      throw Error(slot_name(indices, b, t, slot), std::to_string(key),
                  "-1 or a key below " + std::to_string(visibility.keys()));
    }
    if (key == -1) continue;
    if (visibility.visible(b, t, key)) {
      slots.push_back({key, slot});
    } else if (selection.strict) {
      refuse_hidden(indices, b, t, slot, key);
    }
  }
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& x, const Slot& y) { return x.key < y.key; });
  std::vector<std::int64_t> keys;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i > 0 && slots[i].key == slots[i - 1].key) {
      if (selection.duplicates == Duplicates::set) continue;
      if (selection.duplicates == Duplicates::error) {
        throw Error(slot_name(indices, b, t, slots[i].slot),
                    "key " + std::to_string(slots[i].key) + " a second time",
                    "distinct keys in a real row, or duplicates \"set\" or \"multiset\"");
      }
    }
    keys.push_back(slots[i].key);
  }
  return keys;
}

}  // namespace

void check(const Selection& selection) {
  if (selection.selected.given() && selection.indices.given()) {
    throw Error(selection.indices.name, "the tensor beside " + selection.selected.name,
                "one of them: both name the selected keys");
  }
}

std::vector<std::int64_t> keys_of(const Selection& selection, const Visibility& visibility,
                                  std::int64_t b, std::int64_t t) {
  if (selection.indices.given()) return from_indices(selection, visibility, b, t);
  if (!selection.selected.given()) return visibility.keys(b, t);
  std::vector<std::int64_t> keys;
  const std::int64_t end = selection.strict ? visibility.keys() : visibility.keys_end(t);
  for (std::int64_t key = 0; key < end; ++key) {
    if (!boolean_at(selection.selected, {b, t, key})) continue;
    if (visibility.visible(b, t, key)) {
      keys.push_back(key);
    } else if (selection.strict) {
      refuse_hidden(selection.selected, b, t, key, key);
    }
  }
  return keys;
}

}  // namespace plumbline::attention
