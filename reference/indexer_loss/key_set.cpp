#include "reference/indexer_loss/key_set.hpp"

namespace plumbline::indexer_loss {

KeySet::KeySet(const Tensors& tensors, const Options& options, const Visibility& visibility,
               std::int64_t b, std::int64_t t)
    : tensors_(tensors), options_(options), visibility_(visibility), b_(b), t_(t) {
  if (!options.sparse || !tensors.indices.given()) return;
  slots_ = used_slots(tensors.indices, b, t, visibility.keys());
  refuse_duplicates(tensors.indices, b, t, slots_);
  std::erase_if(slots_, [&](const IndexSlot& slot) { return !visibility.visible(b, t, slot.key); });
}

bool KeySet::next(std::int64_t& cursor, std::int64_t most, Block& block) const {
  block.keys.clear();
  block.places.clear();
  const auto full = [&] {
    return most > 0 && static_cast<std::int64_t>(block.keys.size()) >= most;
  };
  if (options_.sparse && tensors_.indices.given()) {
    for (; cursor < static_cast<std::int64_t>(slots_.size()) && !full(); ++cursor) {
      const IndexSlot& slot = slots_[static_cast<std::size_t>(cursor)];
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
