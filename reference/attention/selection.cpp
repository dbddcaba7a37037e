#include "reference/attention/selection.hpp"

#include <algorithm>

#include "reference/error.hpp"
#include "reference/mask/index_slots.hpp"

namespace plumbline::attention {
namespace {

[[noreturn]] void refuse_hidden(const StoredTensor& tensor, std::int64_t b, std::int64_t t,
                                std::int64_t slot, std::int64_t key) {
  throw Error(slot_name(tensor, b, t, slot),
              "key " + std::to_string(key) + ", which the row does not see",
              "visible keys only (strict_selection)");
}

std::vector<std::int64_t> from_indices(const Selection& selection, const Visibility& visibility,
                                       std::int64_t b, std::int64_t t) {
  const StoredTensor& indices = selection.indices;
  std::vector<IndexSlot> slots = used_slots(indices, b, t, visibility.keys());
  const auto hidden = [&](const IndexSlot& slot) { return !visibility.visible(b, t, slot.key); };
  for (std::int64_t slot = 0; slot < indices.size(2) && selection.strict; ++slot) {
    const std::int64_t key = integer_at(indices, {b, t, slot});
    if (key >= 0 && hidden({key, slot})) refuse_hidden(indices, b, t, slot, key);
  }
  std::erase_if(slots, hidden);
  if (selection.duplicates == Duplicates::error)
    refuse_duplicates(indices, b, t, slots, ", or duplicates \"set\" or \"multiset\"");
  std::vector<std::int64_t> keys;
  for (const IndexSlot& slot : slots) {
    const bool again = !keys.empty() && keys.back() == slot.key;
    if (!again || selection.duplicates == Duplicates::multiset) keys.push_back(slot.key);
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
