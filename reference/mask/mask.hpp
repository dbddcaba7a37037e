// reference/mask/mask.hpp
//
// Who sees whom. A mask is a set, never a number: for a query row there is an ascending list of keys, and a hidden
// key cannot be named. Keys are tokens, or blocks of m tokens on one of two grids (physical: cut from token 0;
// document: cut inside each document). Source of the rules: docs/masks.md.
// Errors: a row outside [0, S) or twice, positions that do not increase where blocks are compared without
// documents, cu_seqlens that do not run from 0 to S, a document that returns on the document grid, a float mask
// value that is neither 0 nor ≤ −9900.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/tensor/sizes.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

struct MaskOptions {
  bool causal = true;
  std::optional<bool> documents;  // absent: segment_ids or cu_seqlens are given
  std::optional<std::int64_t> query_offset, padding_segment;

  template <class Visitor> void fields(Visitor& v) {
    v("causal", causal, "key s is visible to row t only if s <= r(t); blocks by positions");
    v("documents", documents,
      "only keys of the row's segment; default: segment_ids or cu_seqlens are given");
    v("query_offset", query_offset, "row t stands at token t + query_offset; default S - T");
    v("padding_segment", padding_segment, "tokens of this segment are neither keys nor real rows");
  }
  bool operator==(const MaskOptions&) const = default;
};

struct MaskInputs {
  StoredTensor row_index, segment_ids, positions, cu_seqlens, valid, mask, row_mask;

  // keys: the letter of the operation's keys, "S" (tokens) or "N" (blocks)
  template <class Visitor> void fields(Visitor& v, std::string_view keys) {
    const std::string plane = "B T " + std::string(keys);
    v.integers("row_index", row_index, "T", "token at which each query row stands");
    v.integers("segment_ids", segment_ids, "B S", "document of each token");
    v.integers("positions", positions, "B S", "position of each token; default 0 ... S-1");
    v.integers("cu_seqlens", cu_seqlens, "n+1", "document boundaries from 0 to S (B = 1)");
    v.booleans("valid", valid, plane, "false hides a key from a row");
    v.optional("mask", mask, plane, "float mask: 0 visible, <= -9900 or -inf hidden");
    v.booleans("row_mask", row_mask, "B T", "false: the row is not real");
  }
};

enum class Grid { physical, document };
inline std::span<const std::string_view> names_of(Grid) {
  static constexpr std::string_view names[] = {"physical", "document"};
  return names;
}

struct Blocks {  // keys are blocks of m tokens; m = 0: keys are tokens
  std::int64_t m = 0;
  Grid grid = Grid::physical;
};

// Whether a row sees a key, or the first of these reasons why not.
enum class Sight { seen, padding, straddling, other_document, later, masked };

class Visibility {
 public:
  // sizes: B, T and, where a tensor sets it, S; on return S is known, and N where keys are blocks.
  Visibility(const MaskOptions& options, const MaskInputs& inputs, Sizes& sizes, Blocks blocks,
             std::optional<std::int64_t> option_s = std::nullopt);

  std::int64_t batch() const { return batch_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t keys() const { return blocks_.m > 0 ? block_count() : tokens_; }
  std::int64_t block_count() const;
  std::int64_t row_token(std::int64_t t) const { return token_[static_cast<std::size_t>(t)]; }
  std::int64_t position(std::int64_t b, std::int64_t s) const {
    return position_.empty() ? s : position_[at(b, s)];
  }
  std::int64_t segment(std::int64_t b, std::int64_t s) const {
    return segment_.empty() ? 0 : segment_[at(b, s)];
  }
  bool padding(std::int64_t b, std::int64_t s) const {
    return padding_.has_value() && segment(b, s) == *padding_;
  }
  std::int64_t block_first(std::int64_t j) const;  // first token of block j

  bool real(std::int64_t b, std::int64_t t) const {
    return real_[static_cast<std::size_t>(b * rows_ + t)] != 0;
  }
  bool visible(std::int64_t b, std::int64_t t, std::int64_t key) const;
  Sight sight(std::int64_t b, std::int64_t t, std::int64_t key) const;
  // Documents are told apart, so that a row sees only its own.
  bool documents() const { return documents_; }
  // No key at or after this one is visible to row t.
  std::int64_t keys_end(std::int64_t t) const;
  std::vector<std::int64_t> keys(std::int64_t b, std::int64_t t) const;
  // The tokens r(t) − window < s ≤ r(t) of the row's document, ascending. Causality does not touch them.
  std::vector<std::int64_t> window(std::int64_t b, std::int64_t t, std::int64_t width) const;
  // Tokens that some real row reads: where it stands, visible keys (or those of visible blocks), its window.
  // The others have the note `otherwise`. Without a window, window_width is 0.
  RowNotes notes(RowNote otherwise, std::int64_t window_width = 0) const;
  // Tokens at which a real row stands: what a query is made of.
  RowNotes row_notes(RowNote otherwise) const;

 private:
  std::size_t at(std::int64_t b, std::int64_t s) const {
    return static_cast<std::size_t>(b * tokens_ + s);
  }
  void place_rows(const MaskOptions& options, const MaskInputs& inputs);
  void read_tokens(const MaskInputs& inputs);
  void read_rows(const MaskInputs& inputs);
  void cut_blocks();
  void check_positions() const;
  bool see_token(std::int64_t b, std::int64_t r, std::int64_t s) const;
  bool see_block(std::int64_t b, std::int64_t r, std::int64_t j) const;

  std::int64_t batch_ = 0, rows_ = 0, tokens_ = 0;
  bool causal_ = true, documents_ = false, has_positions_ = false;
  std::optional<std::int64_t> padding_;
  Blocks blocks_;
  std::vector<std::int64_t> token_;               // [T]
  std::vector<std::int64_t> position_, segment_;  // [B, S]; empty: 0 ... S-1, and one segment
  std::vector<std::int64_t> first_;               // document grid: first token of each block
  std::vector<char> whole_;  // [B, N] one segment, none padding; empty: all blocks are
  std::vector<char> real_;   // [B, T]
  StoredTensor valid_, plane_;
};

// What a picture shows of an operation's mask: who sees whom, and the selection where the case names one.
struct MaskView {
  Visibility visibility;
  std::int64_t m = 0;                  // tokens per block; 0: keys are tokens
  std::optional<std::int64_t> window;  // tokens that a row sees beside its keys
  StoredTensor selected, indices;      // [B, T, K] or [B, T, k]; or not given
};

}  // namespace plumbline
