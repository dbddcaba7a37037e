// Every mutant of tests/mutants is killed, and no correct execution is. docs/mutants.md has the table.
//   PLUMBLINE_MUTANT_SEEDS=N   seeds of correct executions per setting and family (default 2)
//   PLUMBLINE_MUTANT_TABLE=F   writes docs/mutants.md
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "tests/mutants/world.hpp"

namespace plumbline::mutants {
namespace {

std::string named(const Mutant& mutant) { return mutant.setting + ": " + mutant.name; }

Census& census() {
  static Census made;
  return made;
}

TEST(Mutants, NoneSurvives) {
  const std::vector<std::string> families = default_families();
  std::vector<std::vector<Cell>>& cells = census().cells;
  cells.assign(all_mutants().size(), std::vector<Cell>(families.size()));
  for (const Setting& each : settings()) {
    for (std::size_t f = 0; f < families.size(); ++f) {
      const std::unique_ptr<World> world = make_world(each, families[f], 1);
      if (f == 0) {
        EXPECT_NE(world, nullptr) << each.name << " cannot be made";
      }
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const Mutant& mutant = all_mutants()[i];
        if (mutant.setting != each.name) continue;
        const Cell& cell = cells[i][f] = cell_of(world.get(), mutant);
        if (cell.state == Cell::State::refused)
          std::cout << named(mutant) << " in " << families[f] << ": " << cell.refusal << "\n";
        if (cell.state == Cell::State::same) {
          EXPECT_FALSE(cell.killed[0]) << named(mutant) << " killed in " << families[f]
                                       << " where it is a correct execution";
        }
      }
    }
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_TRUE(names.insert(named(all_mutants()[i])).second)
        << named(all_mutants()[i]) << " twice";
    bool killed = false;
    for (const Cell& cell : cells[i])
      killed = killed || (cell.state == Cell::State::differs && cell.killed[0]);
    EXPECT_TRUE(killed) << named(all_mutants()[i]) << " survives";
  }
  EXPECT_GE(names.size(), 60U);
}

std::vector<KernelContract> contracts() {
  KernelContract online = contract_named("ieee_f32");
  online.name = "online, truncating";
  online.algebra.softmax = Algebra::Softmax::online;
  online.accumulator.rounding = Accumulator::Rounding::truncate;
  return {contract_named("ieee_f32"), online, contract_named("bf16_f32acc")};
}

TEST(Mutants, CorrectExecutionsPass) {
  const char* const asked = std::getenv("PLUMBLINE_MUTANT_SEEDS");
  const std::uint64_t seeds = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 2;
  for (const Setting& each : settings()) {
    for (const std::string& family : default_families()) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const std::unique_ptr<World> world = make_world(each, family, seed);
        if (world == nullptr) break;
        const Json& options = world->problem.options;
        const auto expect_pass = [&](const Killed& killed, const std::string& what) {
          ++census().correct;
          EXPECT_FALSE(killed[0]) << each.name << ", " << family << ", seed " << seed << ": "
                                  << what;
        };
        const Killed plain =
            killed_by(options, world->bounded, world->correct, contract_named("ieee_f32"));
        for (std::size_t rule = 0; rule < rules; ++rule)
          census().failed[rule] += plain[rule] ? 1 : 0;
        expect_pass(plain, "f32");
        for (const KernelContract& contract : contracts()) {
          expect_pass(killed_by(options, bounds_of(*world, contract),
                                execution_of(*world, contract, seed), contract),
                      contract.name);
        }
      }
    }
  }
  EXPECT_GE(census().correct, 1000);
  std::cout << census().correct << " correct executions\n";
}

// The cells hang on the last bits of this machine's exp and log; who is listed, under which rule, does not.
TEST(Mutants, PageIsUpToDate) {
  const std::string page = page_of(census());
  if (const char* const path = std::getenv("PLUMBLINE_MUTANT_TABLE")) std::ofstream(path) << page;
  const auto words = [](std::istream& text) {
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) {
      std::string kept = line;
      for (std::size_t bar = 0, i = 0; i < line.size(); ++i) {
        if (line[i] == '|' && ++bar == 2) kept = line.substr(0, i);
      }
      if (kept.find("correct executions") == std::string::npos) lines.push_back(kept);
    }
    return lines;
  };
  std::ifstream file(std::string(PLUMBLINE_SOURCE_ROOT) + "/docs/mutants.md");
  std::istringstream wanted(page);
  EXPECT_EQ(words(file), words(wanted)) << "docs/mutants.md says how it is written anew";
}

}  // namespace
}  // namespace plumbline::mutants
