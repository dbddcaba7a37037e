// tests/bounds_executions.hpp: generated problems under contracts, and real and adversarial executions of each.
#pragma once
#include <algorithm>
#include <fstream>

#include "fixtures/suite.hpp"
#include "tests/bounds_testing.hpp"

namespace plumbline {

using Rounding = Execution::Rounding;

inline std::vector<Contract> contracts() {
  Contract plain;
  plain.name = "ieee_f32";
  Contract online = plain;
  online.name = "online, truncating";
  online.algebra.softmax = Algebra::Softmax::online;
  online.algebra.tile = 3;
  online.accumulator.rounding = Accumulator::Rounding::truncate;
  Contract bf16 = plain;
  bf16.name = "bf16 probabilities";
  for (const Point point : {Point::probabilities, Point::dscores, Point::norm_out})
    bf16.rounding_points[static_cast<std::size_t>(point)] = Format::bf16;
  bf16.flush_to_zero = true;
  return {plain, online, bf16};
}

inline bool judged(const Operation& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(),
                     [](const OutputInfo& o) { return o.kind == Kind::real; });
}

// A server's call takes no selection; where an execution selects other keys it answers another question.
inline bool selects_alike(const Result& a, const Result& b) {
  const Value *const one = a.find("indexer_indices"), *const other = b.find("indexer_indices");
  return one == nullptr || other == nullptr || one->integers == other->integers;
}

inline bool is_long(const GenerateRequest& request) {
  return std::any_of(request.dims.begin(), request.dims.end(),
                     [](const auto& letter) { return letter.second >= 4096; });
}

// Scores that are exactly 0, or 0 within their errors.
inline bool has_kinks(const std::string& family) {
  const auto holds = [&](const char* name) { return family.find(name) != std::string::npos; };
  return holds("ties") || holds("integers") || holds("cancellation");
}

struct Executed {
  Uses real, adversary;
  std::int64_t executions = 0;
};

inline Execution execution(Rounding rounding, std::uint64_t seed) {
  Execution e;
  e.rounding = rounding;
  e.seed = seed;
  return e;
}

// For some elements of every output and gradient the roundings that push them up the most, found from the derivative by
// each: to first order nothing is worse in that order of operations.
inline void push(const Operation& op, const Problem& problem, const Evaluation& how,
                 const Result& bounded, std::uint64_t seed, Executed& to) {
  constexpr int targets = 2;
  Tape tape;
  this_execution() = execution(Rounding::declared, seed);
  this_execution().tape = &tape;
  const Result recorded = op.evaluate(problem, how);
  this_execution() = {};
  std::size_t first = 0;
  for (const bool gradient : {false, true}) {
    for (const Value& value : gradient ? recorded.gradients : recorded.outputs) {
      if (value.kind != Kind::real) continue;
      const Value* const bound = bounded.find(value.name, gradient);
      for (int i = 0; i < targets && !value.high.empty(); ++i) {
        const std::size_t element = static_cast<std::size_t>(
            (seed * 2654435761u + static_cast<std::uint64_t>(i) * 40503u) % value.high.size());
        const Tape::Node node = tape.outputs()[first + element];
        if (node == 0 || bound == nullptr || !(bound->bound[element] > 0)) continue;
        const std::vector<signed char> signs = tape.pushing(node);
        this_execution() = execution(Rounding::chosen, seed);
        this_execution().choice = signs;
        const Result executed = op.evaluate(problem, how);
        if (selects_alike(bounded, executed)) compare(bounded, executed, to.adversary);
        ++to.executions;
      }
      first += value.high.size();
    }
  }
  this_execution() = {};
}

inline void run(const GenerateRequest& request, const Contract& contract, Executed& to) {
  const GeneratedCase made = generate(request, 1);
  Problem problem = problem_of(made);
  const Operation& op = operation(request.op);
  // Executed as it is declared: tiles of keys under a running maximum.
  if (contract.algebra.softmax == Algebra::Softmax::online) {
    for (const std::string& key : op.honours) {
      if (key == "barrier") problem.schedule[key] = false;
      if (key == "key_block") problem.schedule[key] = contract.algebra.tile;
    }
  }
  const bool selected = give_selection(op, problem);
  for (const OutputInfo& output : op.outputs) {
    if (output.name == "indexer_indices" && !selected) problem.outputs = {output.name};
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
    this_execution() =
        execution(rounding, request.seed * 64 + static_cast<std::uint64_t>(rounding));
    const Result executed = op.evaluate(problem, how);
    if (selects_alike(bounded, executed))
      compare(bounded, executed, rounding == Rounding::declared ? to.real : to.adversary);
    ++to.executions;
  }
  this_execution() = {};
  push(op, problem, how, bounded, request.seed, to);
}

inline std::vector<GenerateRequest> requests_in(const std::string& path) {
  if (!std::ifstream(path)) return {};
  std::vector<GenerateRequest> requests;
  for (const SuiteEntry& entry : read_suite(path)) {
    requests.push_back(entry.request);
    GenerateRequest& request = requests.back();
    if (request.family.find("subnormal") != std::string::npos) request.dtype = Dtype::f32;
    request.schedule = Json::object();
    request.precision = Precision::f64;
    request.contract = nullptr;  // under contracts of this test
  }
  return requests;
}

}  // namespace plumbline
