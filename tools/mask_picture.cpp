#include "tools/mask_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reference/error.hpp"
#include "reference/mask/index_slots.hpp"

namespace plumbline {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

Cell cell_of(Sight sight) {
  switch (sight) {
    case Sight::seen: return Cell::seen;
    case Sight::padding: return Cell::padding;
    case Sight::straddling: return Cell::straddling;
    case Sight::other_document: return Cell::other_document;
    case Sight::later: return Cell::later;
    case Sight::masked: return Cell::masked;
  }
  return Cell::masked;
}

// The token s beside a row's window. Causality does not touch windows, which end at the row.
Cell beside_window(const Visibility& mask, std::int64_t b, std::int64_t r, std::int64_t s) {
  if (mask.padding(b, s)) return Cell::padding;
  if (mask.documents() && mask.segment(b, s) != mask.segment(b, r)) return Cell::other_document;
  return s > r ? Cell::later : Cell::outside;
}

std::vector<char> named_keys(const MaskView& view, std::int64_t b, std::int64_t t) {
  std::vector<char> named(place(view.visibility.keys()), 0);
  if (view.indices.given()) {
    for (const IndexSlot& slot : used_slots(view.indices, b, t, view.visibility.keys()))
      named[place(slot.key)] = 1;
  } else if (view.selected.given()) {
    for (std::size_t key = 0; key < named.size(); ++key) {
      named[key] = boolean_at(view.selected, {b, t, static_cast<std::int64_t>(key)}) ? 1 : 0;
    }
  }
  return named;
}

bool new_document(const Visibility& mask, std::int64_t b, std::int64_t before, std::int64_t token) {
  return mask.segment(b, before) != mask.segment(b, token);
}

std::vector<PictureRow> rows_of(const MaskView& view, const PictureRequest& request) {
  const Visibility& mask = view.visibility;
  if (request.batch < 0 || request.batch >= mask.batch()) {
    throw Error("--batch", std::to_string(request.batch),
                "a batch below B = " + std::to_string(mask.batch()));
  }
  std::vector<std::int64_t> numbers = request.rows;
  for (std::int64_t t = 0; request.rows.empty() && t < mask.rows() && t <= most_rows; ++t)
    numbers.push_back(t);
  if (static_cast<std::int64_t>(numbers.size()) > most_rows) {
    const std::size_t found = request.rows.empty() ? place(mask.rows()) : numbers.size();
    throw Error(
        "rows", std::to_string(found),
        "at most " + std::to_string(most_rows) + " in a picture: choose some, as in --rows 0,5,11");
  }
  std::vector<PictureRow> rows;
  for (const std::int64_t t : numbers) {
    if (t < 0 || t >= mask.rows()) {
      throw Error("--rows", std::to_string(t), "rows below T = " + std::to_string(mask.rows()));
    }
    const std::int64_t token = mask.row_token(t);
    const bool boundary =
        !rows.empty() && new_document(mask, request.batch, rows.back().token, token);
    rows.push_back({t, token, mask.real(request.batch, t), boundary});
  }
  return rows;
}

Panel tokens_panel(const MaskView& view, const Picture& picture, std::int64_t b, std::int64_t first,
                   std::int64_t last) {
  const Visibility& mask = view.visibility;
  Panel panel;
  const bool keys = view.m == 0 && !view.window;  // tokens are the keys, not a window beside them
  panel.title = keys          ? "tokens"
                : view.window ? fmt::format("tokens: a window of {}", *view.window)
                              : "tokens";
  for (std::int64_t s = first; s < last; ++s) {
    panel.keys.push_back(s);
    panel.boundary.push_back(s > first && new_document(mask, b, s - 1, s) ? 1 : 0);
  }
  for (const PictureRow& row : picture.rows) {
    panel.rows.emplace_back();
    if (!row.real) continue;
    std::vector<char> named = keys ? named_keys(view, b, row.row) : std::vector<char>();
    const std::vector<std::int64_t> window = mask.window(b, row.row, view.window.value_or(0));
    for (std::int64_t s = first; s < last; ++s) {
      Cell cell = Cell::seen;
      if (keys) {
        cell = cell_of(mask.sight(b, row.row, s));
        if (named[place(s)] != 0) cell = cell == Cell::seen ? Cell::selected : Cell::dropped;
      } else if (!std::binary_search(window.begin(), window.end(), s)) {
        cell = beside_window(mask, b, row.token, s);
      }
      panel.rows.back().push_back(cell);
    }
  }
  return panel;
}

Panel blocks_panel(const MaskView& view, const Picture& picture, std::int64_t b) {
  const Visibility& mask = view.visibility;
  Panel panel;
  panel.title = fmt::format("blocks of {} tokens", view.m);
  panel.blocks = true;
  for (const Picture::Block& block : picture.blocks) {
    panel.boundary.push_back(
        !panel.keys.empty() &&
                new_document(mask, b, mask.block_first(panel.keys.back()), block.first)
            ? 1
            : 0);
    panel.keys.push_back(block.number);
  }
  for (const PictureRow& row : picture.rows) {
    panel.rows.emplace_back();
    if (!row.real) continue;
    const std::vector<char> named = named_keys(view, b, row.row);
    for (const std::int64_t j : panel.keys) {
      Cell cell = cell_of(mask.sight(b, row.row, j));
      if (named[place(j)] != 0) cell = cell == Cell::seen ? Cell::selected : Cell::dropped;
      panel.rows.back().push_back(cell);
    }
  }
  return panel;
}

}  // namespace

const CellStyle& style_of(Cell cell) {
  static constexpr CellStyle styles[cell_kinds] = {
      {'x', "#8db8dd", "seen"},
      {'#', "#1f4e8c", "seen and selected"},
      {'!', "url(#dropped)", "selected, not seen: dropped"},
      {' ', "#ffffff", "an earlier token, no key"},
      {'.', "#efefef", "later, or not yet complete"},
      {'~', "#f7ead2", "another document"},
      {'/', "url(#straddling)", "straddles documents: seen by nobody"},
      {'-', "#bdbdbd", "padding"},
      {'m', "#eebcb4", "hidden by valid or mask"},
  };
  return styles[static_cast<std::size_t>(cell)];
}

std::vector<Cell> Picture::kinds() const {
  std::vector<Cell> found;
  for (std::size_t i = 0; i < cell_kinds; ++i) {
    const Cell kind = static_cast<Cell>(i);
    const bool any = std::any_of(panels.begin(), panels.end(), [kind](const Panel& panel) {
      return std::any_of(panel.rows.begin(), panel.rows.end(), [kind](const auto& row) {
        return std::find(row.begin(), row.end(), kind) != row.end();
      });
    });
    if (any) found.push_back(kind);
  }
  return found;
}

bool Picture::all_real() const {
  return std::all_of(rows.begin(), rows.end(), [](const PictureRow& row) { return row.real; });
}

Picture picture_of(const MaskView& view, const PictureRequest& request) {
  const Visibility& mask = view.visibility;
  Picture picture;
  picture.rows = rows_of(view, request);
  const std::int64_t b = request.batch, tokens = mask.tokens();
  std::int64_t first = 0, last = tokens;
  if (request.has_tokens) {
    first = request.first_token;
    last = request.last_token + 1;
    if (first < 0 || first >= last || last > tokens) {
      throw Error("--tokens", fmt::format("{},{}", first, last - 1),
                  fmt::format("first,last of tokens below S = {}", tokens));
    }
  }
  if (last - first > most_keys) {
    throw Error("tokens", std::to_string(last - first),
                fmt::format("at most {} in a picture: choose rows and their tokens, as in --rows "
                            "0,5,11 --tokens 0,{}",
                            most_keys, most_keys - 1));
  }
  for (std::int64_t j = 0; j < mask.block_count(); ++j) {
    const std::int64_t at = mask.block_first(j);
    if (at >= first && at + view.m <= last) picture.blocks.push_back({j, at, view.m});
  }
  picture.panels.push_back(tokens_panel(view, picture, b, first, last));
  if (view.m > 0) picture.panels.push_back(blocks_panel(view, picture, b));
  return picture;
}

std::string as_text(const Picture& picture) {
  std::string text = picture.title + "\n";
  for (const std::string& line : picture.subtitle) text += line + "\n";
  text += "\n";
  const auto line = [&](const std::string& head, auto cells) {
    std::string all = fmt::format("{:>13}", head);
    for (std::size_t p = 0; p < picture.panels.size(); ++p) {
      all += "   ";
      for (std::size_t i = 0; i < picture.panels[p].keys.size(); ++i) {
        all += picture.panels[p].boundary[i] != 0 ? '|' : ' ';
        all += cells(p, i);
      }
    }
    all.erase(all.find_last_not_of(' ') + 1);
    text += all + "\n";
  };
  const auto digit = [&](std::size_t p, std::size_t i, std::int64_t unit) {
    const std::int64_t key = picture.panels[p].keys[i];
    return unit == 1 || key >= unit ? static_cast<char>('0' + key / unit % 10) : ' ';
  };
  std::int64_t largest = 0;
  for (const Panel& panel : picture.panels)
    largest = std::max(largest, panel.keys.empty() ? 0 : panel.keys.back());
  std::int64_t unit = 1;
  while (largest / unit >= 10) unit *= 10;
  for (; unit > 0; unit /= 10) {
    line(unit == 1 ? "row at token" : "",
         [&](std::size_t p, std::size_t i) { return digit(p, i, unit); });
  }
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    const PictureRow& row = picture.rows[r];
    line(fmt::format("{} at {}", row.row, row.token), [&](std::size_t p, std::size_t i) {
      if (!row.real) return ':';
      const Panel& panel = picture.panels[p];
      const char letter = style_of(panel.rows[r][i]).letter;
      return letter == ' ' && panel.keys[i] == row.token ? 'o' : letter;
    });
  }
  text += "\n";
  for (const Panel& panel : picture.panels)
    text += (panel.blocks ? " right: " : "  left: ") + panel.title + "\n";
  if (picture.panels.size() == 1) text.replace(text.rfind("  left: "), 8, "  keys: ");
  for (const Cell kind : picture.kinds()) {
    if (style_of(kind).letter != ' ')
      text += fmt::format("     {}  {}\n", style_of(kind).letter, style_of(kind).meaning);
  }
  if (!picture.all_real()) text += "     :  a row that is not real\n";
  return text;
}

}  // namespace plumbline
