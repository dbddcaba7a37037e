// tests/mutants/world.hpp: a setting in a family, with its values, bounds and a correct execution.
#pragma once
#include <memory>

#include "tests/mutants/rules.hpp"

namespace plumbline::mutants {

std::vector<std::string> default_families();  // every one alone

struct World {
  const Operation* operation = nullptr;
  Problem problem;
  bool grad = false;
  Result bounded;  // under ieee_f32
  Result correct;  // in f32
};
// Nothing where the family has nothing to arrange.
std::unique_ptr<World> make_world(const Setting& setting, const std::string& family,
                                  std::uint64_t seed);

Result bounds_of(const World& world, const KernelContract& contract);
// An execution under the contract whose every rounding is as it declares, results stored in its output format.
Result execution_of(const World& world, const Contract& contract, std::uint64_t seed);
Result mutated(const World& world, const Mutant& mutant);

// What became of a mutant in a family.
struct Cell {
  enum class State { absent, refused, same, differs } state = State::absent;
  Killed
      killed{};  // by rules that let the correct execution of the same case pass; others tell nothing
  std::string refusal;
};
Cell cell_of(const World* world, const Mutant& mutant);

// docs/mutants.md: every mutant, family and rule.
struct Census {
  std::vector<std::vector<Cell>> cells;      // by mutant and family
  std::int64_t correct = 0;                  // executions of correct kernels
  std::array<std::int64_t, rules> failed{};  // of these, by rule
};
std::string page_of(const Census& census);

}  // namespace plumbline::mutants
