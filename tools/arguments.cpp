#include "tools/arguments.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fixtures/manifest.hpp"
#include "fixtures/strict_json.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "verdict/contract.hpp"

namespace plumbline {

int threads_of(int asked) {
  constexpr int most = 1024;
  if (asked < 0 || asked > most)
    throw Error("--threads", std::to_string(asked), "0 (all cores) to " + std::to_string(most));
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::vector<std::string> comma_list(const std::string& list, const std::string& option) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; !list.empty();) {
    const std::size_t comma = list.find(',', start);
    parts.push_back(list.substr(start, comma - start));
    if (parts.back().empty())
      throw Error(option, in_quotes(list), "entries with commas between them");
    if (comma == std::string::npos) break;
    start = comma + 1;
  }
  return parts;
}

KernelContract contract_of(const std::string& text) {
  if (!text.starts_with('@')) return contract_named(text);
  const std::string path = text.substr(1);
  if (path.empty()) throw Error("--contract", "@ alone", "@ and the name of a file");
  return contract_from_json(parse_json(read_text(path), "contract " + printable(path)));
}

void check_report_paths(const std::vector<std::pair<std::string, std::string>>& written,
                        const std::vector<std::string>& read) {
  namespace fs = std::filesystem;
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return a == b || fs::equivalent(a, b, ignored) ||
           fs::weakly_canonical(fs::absolute(a, ignored), ignored) ==
               fs::weakly_canonical(fs::absolute(b, ignored), ignored);
  };
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto& [option, path] = written[i];
    if (path.empty()) continue;
    for (const std::string& input : read) {
      if (!input.empty() && same(path, input))
        throw Error(option, printable(path) + ", which is read", "another file");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!written[j].second.empty() && same(path, written[j].second))
        throw Error(option, printable(path) + ", as " + written[j].first, "another file");
    }
  }
}

void write_report(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    throw Error(printable(path), std::strerror(errno), "a place where the file can be written");
}

}  // namespace plumbline
