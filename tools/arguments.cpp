#include "tools/arguments.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

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
  std::ifstream file(path, std::ios::binary);
  std::string json{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    throw Error("contract " + printable(path), std::strerror(errno != 0 ? errno : EIO),
                "a file that can be read");
  }
  return contract_from_json(parse_json(json, "contract " + printable(path)));
}

}  // namespace plumbline
