// Bounds against executions. Every fixture of every shipped suite, under other seeds and several contracts: real
// executions (f32 itself, and simulated ones whose roundings are as declared) and adversaries, whose every rounding
// takes what the contract's model allows. None may leave the proven bound, real ones not the statistical one.
//   PLUMBLINE_BOUND_SEEDS=N   seeds per fixture and contract (default 1); `./dev soak` takes many
//   PLUMBLINE_BOUND_TABLE=F   writes the table of docs/sharpness.md
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fixtures/suite.hpp"
#include "tests/bounds_testing.hpp"

namespace plumbline {
namespace {

using Rounding = Execution::Rounding;

std::vector<Contract> contracts() {
  Contract f32;
  f32.name = "ieee_f32";
  Contract online = f32;
  online.name = "online, truncating";
  online.algebra.softmax = Algebra::Softmax::online;
  online.accumulator.rounding = Accumulator::Rounding::truncate;
  Contract bf16 = f32;
  bf16.name = "bf16 probabilities";
  for (const Point point : {Point::probabilities, Point::dscores, Point::norm_out})
    bf16.rounding_points[static_cast<std::size_t>(point)] = Format::bf16;
  bf16.flush_to_zero = true;
  return {f32, online, bf16};
}

bool judged(const Operation& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [](const OutputInfo& o) { return o.kind == Kind::real; });
}

// A layer is judged from the selection that was made: another execution may select another key of two that are equal
// within their bounds.
std::vector<std::int32_t> give_selection(const Operation& op, Problem& problem) {
  const bool selects = std::any_of(op.given.begin(), op.given.end(), [](const TensorInfo& info) {
    return info.name == "indexer_indices";
  });
  if (!selects || problem.options.value("indexer", Json()).is_null()) return {};
  Problem asking = problem;
  asking.outputs = {"indexer_indices"};
  const Result made = op.evaluate(asking, {.precision = Precision::f64});
  const Value* const indices = made.find("indexer_indices");
  std::vector<std::int32_t> held = indices->integers;
  StoredTensor view;
  view.name = "given.indexer_indices";
  view.dtype = Dtype::i32;
  view.shape = indices->shape;
  view.stride = row_major(view.shape);
  view.data = reinterpret_cast<const std::byte*>(held.data());
  view.present = true;
  problem.given["indexer_indices"] = view;
  return held;
}

// A server's call takes no selection; where an execution selects other keys it answers another question.
bool selects_alike(const Result& a, const Result& b) {
  const Value *const one = a.find("indexer_indices"), *const other = b.find("indexer_indices");
  return one == nullptr || other == nullptr || one->integers == other->integers;
}

struct Executed {
  Uses real, adversary;
  std::int64_t executions = 0;
};

void run(const GenerateRequest& request, const Contract& contract, Executed& to) {
  const GeneratedCase made = generate(request, 1);
  Problem problem = problem_of(made, request);
  const Operation& op = operation(request.op);
  const std::vector<std::int32_t> selection = give_selection(op, problem);
  for (const OutputInfo& output : op.outputs) {
    if (output.name == "indexer_indices" && selection.empty()) problem.outputs = {output.name};
  }
  Evaluation how;
  how.contract = &contract;
  how.backward = request.grad;
  const Result bounded = op.evaluate(problem, how);
  if (contract.name == "ieee_f32") {
    Evaluation plain;
    plain.precision = Precision::f32;
    plain.backward = request.grad;
    const Result executed = op.evaluate(problem, plain);
    if (selects_alike(bounded, executed)) compare(bounded, executed, to.real);
    ++to.executions;
  }
  how.precision = Precision::simulated;
  for (const Rounding rounding : {Rounding::declared, Rounding::away, Rounding::toward,
                                  Rounding::up, Rounding::down, Rounding::random, Rounding::runs}) {
    this_execution() = {rounding, request.seed * 64 + static_cast<std::uint64_t>(rounding), 1};
    const Result executed = op.evaluate(problem, how);
    if (selects_alike(bounded, executed))
      compare(bounded, executed, rounding == Rounding::declared ? to.real : to.adversary);
    ++to.executions;
  }
  this_execution() = {};
}

std::vector<GenerateRequest> shipped(const std::string& op) {
  const std::string path = std::string(PLUMBLINE_SOURCE_ROOT) + "/fixtures/suites/" + op + ".json";
  if (!std::ifstream(path)) return {};
  std::vector<GenerateRequest> requests;
  for (const SuiteEntry& entry : read_suite(path)) requests.push_back(entry.request);
  return requests;
}

TEST(Bounds, NoExecutionLeavesThem) {
  const char* const asked = std::getenv("PLUMBLINE_BOUND_SEEDS");
  const int seeds = asked != nullptr ? std::atoi(asked) : 1;
  std::ofstream table;
  if (const char* const path = std::getenv("PLUMBLINE_BOUND_TABLE")) table.open(path);
  std::int64_t executions = 0;
  for (const Operation* op : operations()) {
    if (!judged(*op)) continue;
    for (const Contract& contract : contracts()) {
      Executed all;
      for (GenerateRequest request : shipped(op->name)) {
        if (request.family.find("subnormal") != std::string::npos) request.dtype = Dtype::f32;
        request.schedule = Json::object();
        request.precision = Precision::f64;
        const std::uint64_t first = request.seed;
        for (int i = 0; i < seeds; ++i) {
          request.seed = first + static_cast<std::uint64_t>(i) * 1000003;
          run(request, contract, all);
        }
      }
      executions += all.executions;
      for (const auto& [name, use] : all.real) {
        const Use& attack = all.adversary[name];
        EXPECT_EQ(use.outside, 0) << op->name << " " << name << " under " << contract.name
                                  << ": a real execution outside its proven bound by "
                                  << use.proven;
        EXPECT_EQ(attack.outside, 0)
            << op->name << " " << name << " under " << contract.name
            << ": an adversary outside its proven bound by " << attack.proven;
        EXPECT_EQ(use.outside_likely, 0)
            << op->name << " " << name << " under " << contract.name
            << ": a real execution outside its statistical bound by " << use.likely;
        if (table.is_open()) {
          char line[200];
          std::snprintf(line, sizeof line, "| %s | %s | %s | %.2f | %.2f | %.2f | %lld |\n",
                        op->name.c_str(), name.c_str(), contract.name.c_str(), use.proven,
                        attack.proven, use.likely, static_cast<long long>(use.elements));
          table << line;
        }
      }
    }
  }
  std::cout << executions << " executions\n";
}

}  // namespace
}  // namespace plumbline
