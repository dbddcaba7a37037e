// tools/mask_picture.hpp
//
// Rows against keys, one cell for each pair: what `plumbline mask` draws, as text or as SVG.
#pragma once
#include <string>
#include <vector>

#include "reference/mask/mask.hpp"

namespace plumbline {

enum class Cell {
  seen,
  selected,  // and seen; where there is a selection, seen means: not selected
  dropped,   // selected, but the row does not see it
  outside,   // before the window
  later,
  other_document,
  straddling,
  padding,
  masked,
};
constexpr std::size_t cell_kinds = 9;
struct CellStyle {
  char letter;
  const char *fill, *meaning;  // fill: a colour, or the id of a pattern
};
const CellStyle& style_of(Cell cell);

struct Panel {
  std::string title;
  bool blocks = false;
  std::vector<std::int64_t> keys;       // their numbers
  std::vector<char> boundary;           // a document begins with this key
  std::vector<std::vector<Cell>> rows;  // empty: the row is not real
};
struct PictureRow {
  std::int64_t row, token;
  bool real, boundary;  // the row above belongs to another document
};
struct Picture {
  std::string title;
  std::vector<std::string> subtitle;
  std::vector<PictureRow> rows;
  std::vector<Panel> panels;
  struct Block {
    std::int64_t number, first, width;
  };
  std::vector<Block> blocks;  // on the axis of tokens

  std::vector<Cell> kinds() const;  // that occur, in the order of the legend
  bool all_real() const;
};

struct PictureRequest {
  std::int64_t batch = 0;
  std::vector<std::int64_t> rows;  // none: all
  bool has_tokens = false;
  std::int64_t first_token = 0, last_token = 0;  // inclusive
};
inline constexpr std::int64_t most_rows = 64, most_keys = 96;

// Error for a batch, row or token that is not there, and for more rows or keys than can be read.
Picture picture_of(const MaskView& view, const PictureRequest& request);

std::string as_text(const Picture& picture);
std::string as_svg(const Picture& picture);  // self-contained

}  // namespace plumbline
