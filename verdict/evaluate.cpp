// The evaluations that results are judged against.
#include <algorithm>

#include "reference/error.hpp"
#include "verdict/check.hpp"

namespace plumbline {
namespace {

std::string_view prefix_of(std::string_view output) {
  for (const std::string_view suffix : {"indices", "selected"}) {
    if (output.ends_with(suffix)) return output.substr(0, output.size() - suffix.size());
  }
  return {};
}

}  // namespace

std::optional<SelectionRole> selection_role(const Operation& operation, std::string_view output) {
  if (!output.ends_with("indices") && !output.ends_with("selected")) return {};
  const auto named = [](std::string_view name) {
    return [name](const auto& info) { return info.name == name; };
  };
  const std::string scores = std::string(prefix_of(output)) + "scores";
  if (std::none_of(operation.outputs.begin(), operation.outputs.end(), named(output))) return {};
  if (std::any_of(operation.outputs.begin(), operation.outputs.end(), named(scores)))
    return SelectionRole{scores, false};
  if (std::any_of(operation.inputs.begin(), operation.inputs.end(), named(scores)))
    return SelectionRole{scores, true};
  return {};
}

SelectionQuestion selection_question(const Operation& operation, const Json& given,
                                     std::string_view output) {
  Json options = operation.resolve(given);
  const std::string_view prefix = prefix_of(output);
  if (!prefix.empty()) {
    const auto inner = options.find(std::string(prefix.substr(0, prefix.size() - 1)));
    if (inner != options.end() && inner->is_object()) options = Json(*inner);
  }
  SelectionQuestion question;
  if (const auto k = options.find("k"); k != options.end() && k->is_number_integer())
    question.k = k->get<std::int64_t>();
  if (const auto tie = options.find("tie"); tie != options.end())
    question.threshold = *tie == "threshold";
  return question;
}

Judge::Judge(const CheckQuestion& question, const CheckSettings& settings)
    : question_(question), settings_(settings) {}

Result Judge::evaluate(Problem problem, const std::vector<ActualTensor>& actual) const {
  Evaluation how;
  how.contract = &question_.contract;
  how.threads = settings_.threads;
  how.forward = how.backward = false;
  for (const ActualTensor& each : actual) {
    (each.gradient ? how.backward : how.forward) = true;
    if (each.gradient) continue;
    problem.outputs.push_back(each.name);
    if (const auto role = selection_role(*question_.operation, each.name);
        role && !role->scores_are_input)
      problem.outputs.push_back(role->scores);
  }
  return question_.operation->evaluate(problem, how);
}

std::optional<SelectionScores> Judge::selection_scores(const SelectionRole& role,
                                                       const Result& result,
                                                       const Problem& problem) const {
  if (!role.scores_are_input) {
    const Value* const scores = result.find(role.scores);
    if (scores == nullptr) return {};
    return scores_of(*scores);
  }
  // Scores that come from outside say nothing of who is hidden: with every key asked for, the operation does.
  const auto input = problem.in.find(role.scores);
  if (input == problem.in.end() || input->second.shape.empty()) return {};
  SelectionScores scores;
  const StoredTensor& tensor = input->second;
  scores.keys = tensor.shape.back();
  scores.rows = 1;
  for (std::size_t axis = 0; axis + 1 < tensor.shape.size(); ++axis)
    scores.rows *= tensor.shape[axis];
  Problem all = problem;
  all.options["k"] = scores.keys;
  Evaluation how;
  how.precision = Precision::f64;
  how.threads = settings_.threads;
  const Result everything = question_.operation->evaluate(all, how);
  const Value* const selected = everything.find("selected");
  if (selected == nullptr) return {};
  scores.visible = selected->booleans;
  for (std::int64_t i = 0; i < scores.rows * scores.keys; ++i) {
    const bool visible = scores.visible[static_cast<std::size_t>(i)] != 0;
    scores.score.push_back(visible ? pair_element(tensor, i) : Pair{});
  }
  return scores;
}

TensorVerdict Judge::verdict_on(const ActualTensor& actual, const Result& result,
                                const Problem& problem) const {
  const Value& value = *result.find(actual.name, actual.gradient);
  const auto role =
      actual.gradient ? std::nullopt : selection_role(*question_.operation, actual.name);
  if (!role) return judge(value, actual.tensor, question_.contract, settings_.worst);
  const auto scores = selection_scores(*role, result, problem);
  if (!scores) return judge(value, actual.tensor, question_.contract, settings_.worst);
  const SelectionQuestion asked =
      selection_question(*question_.operation, problem.options, actual.name);
  return judge_selection(value, *scores, asked, actual.tensor, question_.contract, settings_.worst);
}

}  // namespace plumbline
