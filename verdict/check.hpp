// verdict/check.hpp
//
// A kernel's results against an operation under a contract: every tensor judged, layers stage by stage, and likely
// causes of what is wrong; docs/check.md.
// Guarantees: whatever the actual file holds is judged or listed; nothing here knows an operation by name. A stage
// that the kernel shows (a result on request that may also be given) is judged by itself and then supplied to what
// follows, selections always, other stages as a second way of judging: a kernel may read a stage as it was stored or
// keep it in registers, and FAIL means that neither is possible.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "verdict/judge.hpp"

namespace plumbline {

struct CheckSettings {
  std::size_t worst = 5;  // elements told of each tensor
  int threads = 1;
  bool hints = true;  // look for causes of what is wrong
};

struct CheckQuestion {
  const Operation* operation = nullptr;
  Problem problem;
  std::vector<StoredTensor> actual;  // by their full names; out.x.lo among them
  KernelContract contract;
  std::string golden_path, actual_path;  // for reports
};

struct CheckReport {
  std::string op, contract, golden, actual;
  Json options;
  std::vector<TensorVerdict> tensors;  // in the order of the operation's outputs, then gradients
  std::vector<std::string> not_in_actual;  // what the operation returns unasked
  std::vector<std::string> not_an_output;  // out.* and grad.* that the operation does not have
  std::vector<std::string> inputs_differ;  // in.*, given.*, cot.* of the actual with other bytes
  std::vector<std::string> hints;          // likely causes, the most telling first
  std::string repro;                       // the command that judges this again
  Verdict verdict = Verdict::pass;

  const TensorVerdict* find(std::string_view name) const;
};

// Error when the actual holds nothing to judge, or the case cannot be evaluated.
CheckReport check(const CheckQuestion& question, const CheckSettings& settings = {});

// A result of the actual: its full name there and the name in the golden, "out.lse" or "grad.query".
struct ActualTensor {
  std::string name;  // without place
  bool gradient = false;
  StoredTensor tensor;  // with its remainder
};
std::vector<ActualTensor> results_in(const std::vector<StoredTensor>& actual);

// How a selection output is decided: `<p>indices` and `<p>selected` by `<p>scores`, which is an output or an input.
struct SelectionRole {
  std::string scores;
  bool scores_are_input = false;
};
std::optional<SelectionRole> selection_role(const Operation& operation, std::string_view output);
// What was asked of a selection: k and the tie rule, from the options object that the output's prefix names
// ("indexer_" of a layer), else from the options themselves.
SelectionQuestion selection_question(const Operation& operation, const Json& options,
                                     std::string_view output);
// A result on request that may be given: an intermediate of the operation.
bool is_stage(const Operation& operation, std::string_view output);

// Judges results against an evaluation that holds them, and nothing else.
class Judge {
 public:
  Judge(const CheckQuestion& question, const CheckSettings& settings);
  // The tensors of `actual` that this evaluation holds, by position; others are left out.
  Result evaluate(Problem problem, const std::vector<ActualTensor>& actual) const;
  TensorVerdict verdict_on(const ActualTensor& actual, const Result& result,
                           const Problem& problem) const;

 private:
  std::optional<SelectionScores> selection_scores(const SelectionRole& role, const Result& result,
                                                  const Problem& problem) const;
  const CheckQuestion& question_;
  const CheckSettings& settings_;
};

}  // namespace plumbline
