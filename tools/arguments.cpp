#include "tools/arguments.hpp"

#include <algorithm>
#include <thread>

#include "fixtures/text.hpp"
#include "reference/error.hpp"

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

}  // namespace plumbline
