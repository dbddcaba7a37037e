// tools/text_table.hpp: tables for terminals and for markdown.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace plumbline {

struct TextTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // each as long as the header
};

std::string as_text(
    const TextTable& table);  // columns two blanks apart; empty columns are left out
std::string as_markdown(const TextTable& table);  // | escaped

std::size_t width_of(std::string_view text);  // in characters, not bytes
std::string wrapped(std::string_view text, std::size_t indent,
                    std::size_t width = 100);  // lines end with \n

}  // namespace plumbline
