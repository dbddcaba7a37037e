#include "reference/indexer_loss/key_set.hpp"

#include <algorithm>

#include "reference/error.hpp"

namespace plumbline::indexer_loss {

KeySet::KeySet(const Tensors& tensors, const Options& options, const Visibility& visibility,
               std::int64_t b, std::int64_t t)
    : tensors_(tensors), options_(options), visibility_(visibility), b_(b), t_(t) {
  if (!options.sparse || !tensors.indices.given()) return;
  const std::int64_t keys = visibility.keys();
  for (std::int64_t slot = 0; slot < tensors.indices.size(2); ++slot) {
    const std::int64_t key = integer_at(tensors.indices, {b, t, slot});
    const std::int64_t place[] = {b, t, slot};
    if (key < -1 || key >= keys) {
      throw Error(tensors.indices.name + to_string(Index(place)), std::to_string(key),
                  "-1 or a key below " + std::to_string(keys));
    }
    if (key >= 0) slots_.push_back({key, slot});
  }
  std::sort(slots_.begin(), slots_.end(),
            [](const Slot& x, const Slot& y) { return x.key < y.key; });
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].key != slots_[i - 1].key) continue;
    const std::int64_t place[] = {b, t, std::max(slots_[i].slot, slots_[i - 1].slot)};
    throw Error(tensors.indices.name + to_string(Index(place)),
                "key " + std::to_string(slots_[i].key) + " a second time",
                "distinct keys in a real row");
  }
  std::erase_if(slots_, [&](const Slot& slot) { return !visibility.visible(b, t, slot.key); });
}

bool KeySet::next(std::int64_t& cursor, std::int64_t most, Block& block) const {
  block.keys.clear();
  block.places.clear();
  const auto full = [&] {
    return most > 0 && static_cast<std::int64_t>(block.keys.size()) >= most;
  };
  if (options_.sparse && tensors_.indices.given()) {
    for (; cursor < static_cast<std::int64_t>(slots_.size()) && !full(); ++cursor) {
      const Slot& slot = slots_[static_cast<std::size_t>(cursor)];
      block.keys.push_back(slot.key);
      block.places.push_back(options_.layout == Layout::slots ? slot.slot : slot.key);
    }
    return !block.keys.empty();
  }
  for (const std::int64_t end = visibility_.keys_end(t_); cursor < end && !full(); ++cursor) {
    if (!visibility_.visible(b_, t_, cursor)) continue;
    if (options_.sparse && !boolean_at(tensors_.selected, {b_, t_, cursor})) continue;
    block.keys.push_back(cursor);
    block.places.push_back(cursor);
  }
  return !block.keys.empty();
}

bool KeySet::next_visible(std::int64_t& cursor, std::int64_t most, Block& block) const {
  block.keys.clear();
  for (const std::int64_t end = visibility_.keys_end(t_);
       cursor < end && (most == 0 || static_cast<std::int64_t>(block.keys.size()) < most);
       ++cursor) {
    if (visibility_.visible(b_, t_, cursor)) block.keys.push_back(cursor);
  }
  return !block.keys.empty();
}

}  // namespace plumbline::indexer_loss
