// Bounds against executions. Every fixture of every shipped suite and of tests/bounds (tiny and long ones), under other
// seeds and several contracts: real executions (f32 itself, and simulated ones whose roundings are as declared) and
// adversaries, whose every rounding takes what the contract's model allows: all alike, at random, in long runs, or each
// as pushes one output the furthest. None may leave the proven bound, real ones not the statistical one; and a bound
// that nobody comes near fails too.
//   PLUMBLINE_BOUND_EXECUTIONS=N   at least so many of each operation (default 2000); `./dev soak` takes 100000
//   PLUMBLINE_BOUND_ONLY=OP        of one operation only
//   PLUMBLINE_BOUND_TABLE=F        writes the table of docs/sharpness.md
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tests/bounds_executions.hpp"

namespace plumbline {
namespace {

// The least that the most successful execution uses of a bound.
struct Sharpness {
  double real, adversary, likely;
};
constexpr Sharpness of_operations{0.01, 0.10, 0.02}, of_long_ones{0, 0.07, 0.01},
    of_layers{0, 0.01, 0};

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// At least `least` executions of an operation, all contracts together; the seed changes with every round.
std::map<std::string, Executed> execute(const std::vector<GenerateRequest>& requests,
                                        std::int64_t least) {
  std::map<std::string, Executed> by_contract;
  std::int64_t executions = 0;
  for (std::uint64_t round = 0; executions < least && !requests.empty(); ++round) {
    for (const Contract& contract : contracts()) {
      Executed& all = by_contract[contract.name];
      const std::int64_t before = all.executions;
      for (GenerateRequest request : requests) {
        request.seed += round * 1000003;
        run(request, contract, all);
      }
      executions += all.executions - before;
    }
  }
  return by_contract;
}

void expect_inside(const std::string& what, const Executed& all, bool provable) {
  for (const auto& [name, use] : all.real) {
    EXPECT_EQ(use.outside, 0) << what << " " << name
                              << ": a real execution outside its proven bound by " << use.proven;
    EXPECT_EQ(use.outside_likely, 0)
        << what << " " << name << ": a real execution outside its statistical bound by "
        << use.likely;
    if (provable) {
      EXPECT_EQ(use.unprovable, 0) << what << " " << name << ": a bound that proves nothing";
    }
  }
  for (const auto& [name, use] : all.adversary) {
    EXPECT_EQ(use.outside, 0) << what << " " << name
                              << ": an adversary outside its proven bound by " << use.proven;
  }
}

// Whole layers are judged stage by stage: errors of a chain of operations need not add up, their bounds do.
bool is_whole_layer(const Operation& op) {
  return std::any_of(op.honours.begin(), op.honours.end(),
                     [](const std::string& key) { return key == "prefill"; }) ||
         std::any_of(op.outputs.begin(), op.outputs.end(),
                     [](const OutputInfo& output) { return output.name.starts_with("state."); });
}

void expect_sharp(const std::string& op, const Executed& all, const Sharpness& least) {
  for (const auto& [name, use] : all.real) {
    if (use.bounded == 0) continue;  // copied or chosen, not computed
    const Use& attack = all.adversary.at(name);
    EXPECT_GE(attack.proven, least.adversary) << op << " " << name;
    EXPECT_GE(use.proven, least.real) << op << " " << name;
    EXPECT_GE(use.likely, least.likely) << op << " " << name;
  }
}

void write(std::ostream& table, const std::string& op, const std::string& contract,
           const Executed& all) {
  for (const auto& [name, use] : all.real) {
    char line[200];
    std::snprintf(line, sizeof line, "| %s | %s | %s | %.2f | %.2f | %.2f | %lld |\n", op.c_str(),
                  name.c_str(), contract.c_str(), use.proven, all.adversary.at(name).proven,
                  use.likely, static_cast<long long>(use.elements));
    table << line;
  }
}

TEST(Bounds, NoExecutionLeavesThemAndSomeComeNear) {
  const std::string root = std::string(PLUMBLINE_SOURCE_ROOT);
  const std::int64_t least = std::stoll(variable("PLUMBLINE_BOUND_EXECUTIONS", "2000"));
  const std::string only = variable("PLUMBLINE_BOUND_ONLY", ""),
                    path = variable("PLUMBLINE_BOUND_TABLE", "");
  std::ofstream table;
  if (!path.empty()) table.open(path);
  for (const Operation* op : operations()) {
    const bool asked = only.empty() || only == op->name;
    if (!judged(*op) || !asked) continue;
    std::vector<GenerateRequest> smooth, kinked, lengthy;
    for (const std::string folder : {"/fixtures/suites/", "/tests/bounds/"}) {
      for (const GenerateRequest& request : requests_in(root + folder + op->name + ".json")) {
        // A kink pins its ratio at 1 and would hide what is loose.
        (has_kinks(request.family) ? kinked
         : is_long(request)        ? lengthy
                                   : smooth)
            .push_back(request);
      }
    }
    std::int64_t executions = 0;
    const auto all = execute(smooth, least), at_kinks = execute(kinked, 1),
               at_length = execute(lengthy, 1);
    for (const auto* part : {&all, &at_kinks, &at_length}) {
      for (const auto& [contract, executed] : *part) {
        expect_inside(op->name + " under " + contract, executed,
                      part != &at_kinks && contract == "ieee_f32");
        executions += executed.executions;
      }
    }
    for (const auto& [contract, executed] : all) {
      if (table.is_open()) write(table, op->name, contract, executed);
    }
    for (const auto& [contract, executed] : at_length) {
      if (table.is_open()) write(table, op->name, contract + ", 4096", executed);
    }
    const bool layer = is_whole_layer(*op);
    expect_sharp(op->name, all.at("ieee_f32"), layer ? of_layers : of_operations);
    if (!lengthy.empty())
      expect_sharp(op->name + " at length", at_length.at("ieee_f32"), of_long_ones);
    std::cout << op->name << ": " << executions << " executions\n";
  }
}

}  // namespace
}  // namespace plumbline
