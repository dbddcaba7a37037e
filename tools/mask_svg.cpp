#include <fmt/format.h>

#include <algorithm>

#include "tools/mask_picture.hpp"

namespace plumbline {
namespace {

constexpr int cell = 14, margin = 16, label_width = 74, gap = 34, title_height = 22,
              line_height = 15;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string text_at(int x, int y, const char* style, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, style,
                     escaped(text));
}
std::string box(int x, int y, int width, int height, const char* fill, const char* more = "") {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}/>\n", x, y,
                     width, height, fill, more);
}
std::string line_from(int x1, int y1, int x2, int y2, const char* style) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", x1, y1, x2,
                     y2, style);
}

constexpr const char* head =
    "<style>\n"
    "text { font-family: \"DejaVu Sans\", Helvetica, Arial, sans-serif; fill: #222222; }\n"
    ".title { font-size: 14px; font-weight: bold; }\n"
    ".small { font-size: 10px; fill: #555555; }\n"
    ".panel { font-size: 11px; font-weight: bold; }\n"
    ".key { font-size: 8px; text-anchor: middle; }\n"
    ".row { font-size: 9px; text-anchor: end; }\n"
    ".legend { font-size: 10px; }\n"
    ".document { stroke: #b3261e; stroke-width: 1.6; }\n"
    "</style>\n"
    "<defs>\n"
    "<pattern id=\"straddling\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"#ffffff\"/>"
    "<rect width=\"2.4\" height=\"5\" fill=\"#e08a1e\"/></pattern>\n"
    "<pattern id=\"unreal\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(-45)\"><rect width=\"6\" height=\"6\" fill=\"#ffffff\"/>"
    "<rect width=\"1\" height=\"6\" fill=\"#999999\"/></pattern>\n"
    "<pattern id=\"dropped\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">"
    "<rect width=\"4\" height=\"4\" fill=\"#ffffff\"/>"
    "<rect width=\"2\" height=\"2\" fill=\"#1f4e8c\"/></pattern>\n"
    "</defs>\n";
constexpr const char* grid = " stroke=\"#ffffff\" stroke-width=\"1\"";
constexpr const char* frame = " stroke=\"#777777\" stroke-width=\"0.8\"";

// Numbers over every column while they fit, else over every fifth.
std::string column_labels(const Panel& panel, int x, int y) {
  std::string out;
  const bool all = panel.keys.empty() || panel.keys.back() < 100;
  for (std::size_t i = 0; i < panel.keys.size(); ++i) {
    if (all || panel.keys[i] % 5 == 0)
      out += text_at(x + static_cast<int>(i) * cell + cell / 2, y, "key",
                     std::to_string(panel.keys[i]));
  }
  return out;
}

// Blocks over the tokens they cover.
std::string block_axis(const Picture& picture, std::int64_t first_token, int x, int y) {
  std::string out;
  for (const Picture::Block& block : picture.blocks) {
    const int at = x + static_cast<int>(block.first - first_token) * cell,
              width = static_cast<int>(block.width) * cell;
    out += box(at + 1, y, width - 2, cell - 2, "#dfe7f1", frame);
    out += text_at(at + width / 2, y + cell - 4, "key", std::to_string(block.number));
  }
  return out;
}

std::string panel_cells(const Picture& picture, const Panel& panel, int x, int y) {
  std::string out;
  const int width = static_cast<int>(panel.keys.size()) * cell,
            height = static_cast<int>(picture.rows.size()) * cell;
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    const int top = y + static_cast<int>(r) * cell;
    if (panel.rows[r].empty() && width > 0) out += box(x, top, width, cell, "url(#unreal)", grid);
    for (std::size_t i = 0; i < panel.rows[r].size(); ++i) {
      const int left = x + static_cast<int>(i) * cell;
      out += box(left, top, cell, cell, style_of(panel.rows[r][i]).fill, grid);
      if (!panel.blocks && panel.keys[i] == picture.rows[r].token) {
        out += fmt::format(
            "<circle cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"#ffffff\" stroke=\"#222222\"/>\n",
            left + cell / 2, top + cell / 2);
      }
    }
    if (picture.rows[r].boundary) out += line_from(x, top, x + width, top, "document");
  }
  for (std::size_t i = 0; i < panel.keys.size(); ++i) {
    const int left = x + static_cast<int>(i) * cell;
    if (panel.boundary[i] != 0) out += line_from(left, y, left, y + height, "document");
  }
  if (width > 0 && height > 0) out += box(x, y, width, height, "none", frame);
  return out;
}

std::string legend(const Picture& picture, int x, int y, int& bottom) {
  std::string out;
  const auto entry = [&](const std::string& sign, const char* meaning) {
    out += sign + text_at(x + 20, y + 9, "legend", meaning);
    y += line_height;
  };
  for (const Cell kind : picture.kinds())
    entry(box(x, y, 12, 11, style_of(kind).fill, frame), style_of(kind).meaning);
  if (!picture.all_real())
    entry(box(x, y, 12, 11, "url(#unreal)", frame), "a row that is not real");
  entry(fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"#ffffff\" stroke=\"#222222\"/>\n",
                    x + 6, y + 6),
        "the row's own token");
  const bool documents =
      std::any_of(picture.panels.begin(), picture.panels.end(), [](const Panel& panel) {
        return std::find(panel.boundary.begin(), panel.boundary.end(), 1) != panel.boundary.end();
      });
  if (documents) entry(line_from(x, y + 6, x + 12, y + 6, "document"), "a document begins");
  bottom = y;
  return out;
}

}  // namespace

std::string as_svg(const Picture& picture) {
  std::string body;
  int y = margin + 8;
  body += text_at(margin, y, "title", picture.title);
  y += 4;
  std::size_t longest = picture.title.size();
  for (const std::string& line : picture.subtitle) {
    y += line_height - 2;
    body += text_at(margin, y, "small", line);
    longest = std::max(longest, line.size());
  }
  const int panel_title = y + title_height, axis = panel_title + 6,
            labels = axis + (picture.blocks.empty() ? 0 : cell) + 10, top = labels + 5;
  int x = margin + label_width;
  body += text_at(x - 6, labels, "row", "row at token");
  for (std::size_t r = 0; r < picture.rows.size(); ++r) {
    body += text_at(x - 6, top + static_cast<int>(r) * cell + cell - 4, "row",
                    fmt::format("{} at {}", picture.rows[r].row, picture.rows[r].token));
  }
  for (const Panel& panel : picture.panels) {
    body += text_at(x, panel_title, "panel", panel.title);
    if (!panel.blocks && !panel.keys.empty())
      body += block_axis(picture, panel.keys.front(), x, axis);
    body += column_labels(panel, x, labels) + panel_cells(picture, panel, x, top);
    const int title_width = static_cast<int>(panel.title.size()) * 7;
    x += std::max(static_cast<int>(panel.keys.size()) * cell, title_width) + gap;
  }
  int bottom = 0;
  body += legend(picture, x, top, bottom);
  const int width = std::max(x + 230, 2 * margin + static_cast<int>(longest) * 7),
            height = std::max(bottom, top + static_cast<int>(picture.rows.size()) * cell) + margin;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
             "viewBox=\"0 0 {0} {1}\">\n",
             width, height) +
         head + box(0, 0, width, height, "#ffffff") + body + "</svg>\n";
}

}  // namespace plumbline
