#include "reference/mask/mask.hpp"

#include <algorithm>
#include <set>

#include "reference/error.hpp"

namespace plumbline {

Visibility::Visibility(const MaskOptions& options, const MaskInputs& inputs, Sizes& sizes,
                       Blocks blocks, std::optional<std::int64_t> option_s)
    : causal_(options.causal), padding_(options.padding_segment), blocks_(blocks) {
  const bool segments = inputs.segment_ids.given(), lengths = inputs.cu_seqlens.given();
  if (lengths && (segments || inputs.positions.given())) {
    throw Error("in.cu_seqlens", segments ? "in.segment_ids beside it" : "in.positions beside it",
                "cu_seqlens alone: it stands for both");
  }
  if (!segments && !lengths && options.documents.value_or(false)) {
    throw Error("option mask.documents", "true without segment_ids or cu_seqlens", "one of them");
  }
  if (!segments && !lengths && padding_) {
    throw Error("option mask.padding_segment",
                std::to_string(*padding_) + " without segment_ids or cu_seqlens", "one of them");
  }
  if (blocks_.m < 0) throw Error("option m", std::to_string(blocks_.m), "m >= 1");
  documents_ = options.documents.value_or(segments || lengths);

  batch_ = sizes["B"];
  rows_ = sizes.known("T") ? sizes["T"] : sizes["S"];
  if (lengths) {
    const std::int64_t parts = inputs.cu_seqlens.size(0);
    if (parts < 1) throw Error("in.cu_seqlens", "no entry", "n + 1 entries from 0 to S");
    sizes.set("S", integer_at(inputs.cu_seqlens, {parts - 1}), "in.cu_seqlens");
  }
  if (option_s) sizes.set("S", *option_s, "option S");
  if (!sizes.known("S")) sizes.set("S", rows_, "T, nothing else being given");
  tokens_ = sizes["S"];
  if (tokens_ < 0) throw Error("option S", std::to_string(tokens_), "S >= 0");

  place_rows(options, inputs);
  read_tokens(inputs);
  read_rows(inputs);
  if (blocks_.m > 0) {
    cut_blocks();
    sizes.set("N", block_count(),
              blocks_.grid == Grid::physical ? "floor(S / m), S = " + std::to_string(tokens_) +
                                                   ", m = " + std::to_string(blocks_.m)
                                             : "the blocks of the documents");
    check_positions();
  }
  valid_ = inputs.valid;
  plane_ = inputs.mask;
}

void Visibility::place_rows(const MaskOptions& options, const MaskInputs& inputs) {
  if (inputs.row_index.given() && options.query_offset) {
    throw Error("option mask.query_offset",
                std::to_string(*options.query_offset) + " beside in.row_index", "one of them");
  }
  const std::int64_t shift = options.query_offset.value_or(tokens_ - rows_);
  std::set<std::int64_t> seen;
  for (std::int64_t t = 0; t < rows_; ++t) {
    const bool listed = inputs.row_index.given();
    std::int64_t token = 0;
    if (listed) {
      token = integer_at(inputs.row_index, {t});
    } else if (__builtin_add_overflow(t, shift, &token)) {
      token = -1;
    }
    const std::string where =
        listed ? "in.row_index[" + std::to_string(t) + "]" : "option mask.query_offset";
    if (token < 0 || token >= tokens_) {
      throw Error(where, "row " + std::to_string(t) + " at token " + std::to_string(token),
                  "a token in [0, S) with S = " + std::to_string(tokens_));
    }
    if (listed && !seen.insert(token).second) {
      throw Error(where, "token " + std::to_string(token) + " a second time", "distinct tokens");
    }
    token_.push_back(token);
  }
}

void Visibility::read_tokens(const MaskInputs& inputs) {
  const auto count = static_cast<std::size_t>(batch_ * tokens_);
  if (inputs.positions.given() || inputs.cu_seqlens.given()) position_.resize(count);
  if (inputs.segment_ids.given() || inputs.cu_seqlens.given()) segment_.resize(count);
  const bool listed = inputs.positions.given();
  has_positions_ = listed || inputs.cu_seqlens.given();
  for (std::int64_t b = 0; b < batch_ && (listed || inputs.segment_ids.given()); ++b) {
    for (std::int64_t s = 0; s < tokens_; ++s) {
      if (listed) position_[at(b, s)] = integer_at(inputs.positions, {b, s});
      if (inputs.segment_ids.given()) segment_[at(b, s)] = integer_at(inputs.segment_ids, {b, s});
    }
  }
  if (!inputs.cu_seqlens.given()) return;
  if (batch_ != 1) {
    throw Error("in.cu_seqlens", "B = " + std::to_string(batch_), "B = 1");
  }
  const std::int64_t parts = inputs.cu_seqlens.size(0);
  if (const std::int64_t start = integer_at(inputs.cu_seqlens, {0}); start != 0) {
    throw Error("in.cu_seqlens[0]", std::to_string(start), "0");
  }
  for (std::int64_t part = 1; part < parts; ++part) {
    const std::int64_t first = integer_at(inputs.cu_seqlens, {part - 1});
    const std::int64_t last = integer_at(inputs.cu_seqlens, {part});
    if (last < first || last > tokens_) {
      throw Error("in.cu_seqlens[" + std::to_string(part) + "]", std::to_string(last),
                  "a value from " + std::to_string(first) + " to S = " + std::to_string(tokens_));
    }
    for (std::int64_t s = first; s < last; ++s) {
      segment_[at(0, s)] = part - 1;
      position_[at(0, s)] = s - first;
    }
  }
}

void Visibility::read_rows(const MaskInputs& inputs) {
  real_.assign(static_cast<std::size_t>(batch_ * rows_), 1);
  for (std::int64_t b = 0; b < batch_; ++b) {
    for (std::int64_t t = 0; t < rows_; ++t) {
      const bool asked = !inputs.row_mask.given() || boolean_at(inputs.row_mask, {b, t});
      const bool real = asked && !padding(b, row_token(t));
      real_[static_cast<std::size_t>(b * rows_ + t)] = real ? 1 : 0;
      if (!real || !inputs.mask.given()) continue;
      for (std::int64_t key = 0; key < inputs.mask.size(2); ++key) {
        const double value = element<double>(inputs.mask, {b, t, key});
        if (value != 0 && !(value <= -9900)) {
          const std::int64_t place[] = {b, t, key};
          throw Error("in.mask" + to_string(Index(place)), std::to_string(value),
                      "0 (visible) or <= -9900 (hidden)");
        }
      }
    }
  }
}

std::int64_t Visibility::block_count() const {
  if (blocks_.m == 0) return 0;
  return blocks_.grid == Grid::physical ? tokens_ / blocks_.m
                                        : static_cast<std::int64_t>(first_.size());
}

std::int64_t Visibility::block_first(std::int64_t j) const {
  return blocks_.grid == Grid::physical ? j * blocks_.m : first_[static_cast<std::size_t>(j)];
}

void Visibility::cut_blocks() {
  if (blocks_.grid == Grid::document) {
    if (batch_ != 1)
      throw Error("option grid", "document with B = " + std::to_string(batch_), "B = 1");
    if (segment_.empty()) {  // one document: the grids are the same
      blocks_.grid = Grid::physical;
      return;
    }
    std::set<std::int64_t> seen;
    for (std::int64_t first = 0; first < tokens_;) {
      std::int64_t last = first;
      while (last < tokens_ && segment(0, last) == segment(0, first)) ++last;
      if (!padding(0, first)) {
        if (!seen.insert(segment(0, first)).second) {
          throw Error("in.segment_ids",
                      "document " + std::to_string(segment(0, first)) + " again at token " +
                          std::to_string(first),
                      "one run of tokens for each document (grid document)");
        }
        for (std::int64_t s = first; blocks_.m <= last - s; s += blocks_.m) first_.push_back(s);
      }
      first = last;
    }
  }
  for (std::int64_t b = 0; b < batch_ && !segment_.empty(); ++b) {
    for (std::int64_t j = 0; j < block_count(); ++j) {
      const std::int64_t first = block_first(j);
      bool whole = true;
      for (std::int64_t s = first; s < first + blocks_.m; ++s) {
        whole = whole && !padding(b, s) && (!documents_ || segment(b, s) == segment(b, first));
      }
      whole_.push_back(whole ? 1 : 0);
    }
  }
}

void Visibility::check_positions() const {
  if (!has_positions_ || documents_ || !causal_) return;
  for (std::int64_t b = 0; b < batch_; ++b) {
    for (std::int64_t s = 1; s < tokens_; ++s) {
      if (position(b, s) <= position(b, s - 1)) {
        const std::int64_t place[] = {b, s};
        throw Error("position" + to_string(Index(place)),
                    std::to_string(position(b, s)) + " after " + std::to_string(position(b, s - 1)),
                    "increasing positions where blocks are compared without documents");
      }
    }
  }
}

bool Visibility::see_token(std::int64_t b, std::int64_t r, std::int64_t s) const {
  if (causal_ && s > r) return false;
  if (padding(b, s)) return false;
  return !documents_ || segment(b, s) == segment(b, r);
}

bool Visibility::see_block(std::int64_t b, std::int64_t r, std::int64_t j) const {
  if (!whole_.empty() && whole_[static_cast<std::size_t>(b * block_count() + j)] == 0) return false;
  const std::int64_t first = block_first(j);
  if (causal_ && position(b, first) + blocks_.m > position(b, r) + 1) return false;
  return !documents_ || segment(b, first) == segment(b, r);
}

bool Visibility::visible(std::int64_t b, std::int64_t t, std::int64_t key) const {
  const std::int64_t r = row_token(t);
  if (!(blocks_.m > 0 ? see_block(b, r, key) : see_token(b, r, key))) return false;
  if (valid_.given() && !boolean_at(valid_, {b, t, key})) return false;
  return !plane_.given() || element<double>(plane_, {b, t, key}) == 0;
}

Sight Visibility::sight(std::int64_t b, std::int64_t t, std::int64_t key) const {
  if (visible(b, t, key)) return Sight::seen;
  const std::int64_t r = row_token(t), width = blocks_.m > 0 ? blocks_.m : 1,
                     first = blocks_.m > 0 ? block_first(key) : key;
  bool padded = false, straddles = false;
  for (std::int64_t s = first; s < first + width; ++s) {
    padded = padded || padding(b, s);
    straddles = straddles || (documents_ && segment(b, s) != segment(b, first));
  }
  if (padded) return Sight::padding;
  if (straddles) return Sight::straddling;
  if (documents_ && segment(b, first) != segment(b, r)) return Sight::other_document;
  const bool later =
      blocks_.m > 0 ? position(b, first) + blocks_.m > position(b, r) + 1 : first > r;
  return causal_ && later ? Sight::later : Sight::masked;
}

std::int64_t Visibility::keys_end(std::int64_t t) const {
  if (!causal_) return keys();
  const std::int64_t seen = row_token(t) + 1;  // tokens up to the row's own
  if (blocks_.m == 0) return std::min(keys(), seen);
  const bool in_order = position_.empty() && blocks_.grid == Grid::physical;
  return in_order ? std::min(keys(), seen / blocks_.m) : keys();
}

std::vector<std::int64_t> Visibility::keys(std::int64_t b, std::int64_t t) const {
  std::vector<std::int64_t> out;
  if (!real(b, t)) return out;
  for (std::int64_t key = 0, end = keys_end(t); key < end; ++key) {
    if (visible(b, t, key)) out.push_back(key);
  }
  return out;
}

std::vector<std::int64_t> Visibility::window(std::int64_t b, std::int64_t t,
                                             std::int64_t width) const {
  std::vector<std::int64_t> out;
  const std::int64_t r = row_token(t);
  const std::int64_t from = width > r ? 0 : r - width + 1;
  for (std::int64_t s = from; s <= r && width > 0; ++s) {
    if (!padding(b, s) && (!documents_ || segment(b, s) == segment(b, r))) out.push_back(s);
  }
  return out;
}

RowNotes Visibility::notes(RowNote otherwise, std::int64_t window_width) const {
  RowNotes notes(static_cast<std::size_t>(batch_ * tokens_), otherwise);
  const auto read = [&](std::int64_t b, std::int64_t s) { notes[at(b, s)] = RowNote::as_stored; };
  std::vector<char> seen;  // keys already marked, of one batch
  for (std::int64_t b = 0; b < batch_; ++b) {
    seen.assign(static_cast<std::size_t>(keys()), 0);
    for (std::int64_t t = 0; t < rows_; ++t) {
      if (!real(b, t)) continue;
      read(b, row_token(t));
      for (const std::int64_t s : window(b, t, window_width)) read(b, s);
      for (std::int64_t key = 0, end = keys_end(t); key < end; ++key) {
        if (seen[static_cast<std::size_t>(key)] != 0 || !visible(b, t, key)) continue;
        seen[static_cast<std::size_t>(key)] = 1;
        const std::int64_t first = blocks_.m > 0 ? block_first(key) : key,
                           width = blocks_.m > 0 ? blocks_.m : 1;
        for (std::int64_t s = first; s < first + width; ++s) read(b, s);
      }
    }
  }
  return notes;
}

RowNotes Visibility::row_notes(RowNote otherwise) const {
  RowNotes notes(static_cast<std::size_t>(batch_ * tokens_), otherwise);
  for (std::int64_t b = 0; b < batch_; ++b) {
    for (std::int64_t t = 0; t < rows_; ++t) {
      if (real(b, t)) notes[at(b, row_token(t))] = RowNote::as_stored;
    }
  }
  return notes;
}

}  // namespace plumbline
