#include "tools/text_table.hpp"

#include <algorithm>

namespace plumbline {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string result, line(indent, ' ');
  bool empty = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!empty && width_of(line) + 1 + width_of(word) > width) {
      result += line + "\n";
      line.assign(indent, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return empty ? result : result + line + "\n";
}

std::string as_text(const TextTable& table) {
  std::vector<std::size_t> widths(table.header.size(), 0);
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& row, bool header) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::size_t width = std::max(widths[i], width_of(table.header[i]));
      line += row[i] + std::string(width - width_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!header || !line.empty()) text += line + "\n";
  };
  add(table.header, true);
  for (const auto& row : table.rows) add(row, false);
  return text;
}

std::string as_markdown(const TextTable& table) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    text += "|";
    for (const std::string& cell : row) {
      text += ' ';
      for (const char c : cell) text += c == '|' ? std::string("\\|") : std::string(1, c);
      text += " |";
    }
    text += "\n";
  };
  add(table.header);
  text += "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) text += "---|";
  text += "\n";
  for (const auto& row : table.rows) add(row);
  return text;
}

}  // namespace plumbline
