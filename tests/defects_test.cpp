// Are executions able to find a wrong bound? Each defect of tests/defects/defects.json, turned on alone, must let some
// execution leave its proven bound. Real executions find few of them, adversaries that push one output most.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>

#include "reference/registry/operation.hpp"
#include "tests/bounds_executions.hpp"

namespace {
int planted_defect = 0;
}
bool planted(int defect) { return defect == planted_defect; }

namespace plumbline {
namespace {

struct Found {
  std::int64_t by_real = 0, by_adversary = 0, executions = 0;
};

void search(const std::string& op, const Contract& contract, Found& found) {
  const std::string root = std::string(PLUMBLINE_SOURCE_ROOT);
  for (const std::string folder : {"/tests/bounds/", "/fixtures/suites/"}) {
    for (const GenerateRequest& request : requests_in(root + folder + op + ".json")) {
      Executed all;
      run(request, contract, all);
      found.executions += all.executions;
      for (const auto& [name, use] : all.real) found.by_real += use.outside;
      for (const auto& [name, use] : all.adversary) found.by_adversary += use.outside;
    }
  }
}

Found search_all() {
  Found found;
  // The short ones first.
  for (const char* const op :
       {"rms_norm", "rope", "linear", "merge_attention", "csa_compress", "mla_attention",
        "indexer_scores", "dsa_indexer_loss", "csa_indexer_loss", "csa_attention"}) {
    for (const Contract& contract : contracts()) {
      search(op, contract, found);
      if (found.by_real + found.by_adversary > 0) return found;
    }
  }
  return found;
}

TEST(Defects, EveryOneIsFound) {
  std::ifstream file(std::string(PLUMBLINE_SOURCE_ROOT) + "/tests/defects/defects.json");
  const Json defects = Json::parse(file)["defects"];
  int by_real = 0;
  for (const Json& defect : defects) {
    planted_defect = defect["id"];
    const Found found = search_all();
    EXPECT_GT(found.by_real + found.by_adversary, 0)
        << "defect " << planted_defect << " stays unseen: " << defect["doc"];
    by_real += found.by_real > 0 ? 1 : 0;
    std::cout << planted_defect << ": " << found.by_real << " elements of real executions, "
              << found.by_adversary << " of adversaries, after " << found.executions << ": "
              << defect["doc"].get<std::string>() << "\n";
  }
  planted_defect = 0;
  const Found none = search_all();
  EXPECT_EQ(none.by_real + none.by_adversary, 0) << "the planted files differ from the library's";
  std::cout << defects.size() << " defects, " << by_real << " of them seen by a real execution\n";
}

}  // namespace
}  // namespace plumbline
