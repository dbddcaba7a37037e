#include "verdict/terms.hpp"

#include <algorithm>
#include <cmath>

namespace plumbline {
namespace {

struct Part {
  std::string name;
  KernelContract without;
};
std::vector<Part> parts_of(const KernelContract& contract) {
  std::vector<Part> parts;
  Part functions{"elementary functions", contract};
  functions.without.ulp = {0, 0, 0, 0, 0, 0, 0};
  parts.push_back(functions);
  for (std::size_t i = 0; i < points; ++i) {
    const std::optional<Format> format = contract.rounding_points[i];
    if (!format) continue;
    Part rounding{std::string(names_of(Point{})[i]) + " in " +
                      std::string(names_of(Format{})[static_cast<std::size_t>(*format)]),
                  contract};
    rounding.without.rounding_points[i].reset();
    parts.push_back(rounding);
  }
  return parts;
}

bool took_much(const Result& result) {
  constexpr std::int64_t most = 1'000'000;
  const auto evaluations = [](const Work& w) {
    return w.evaluations + w.score_evaluations + w.normaliser_evaluations;
  };
  std::int64_t elements = 0;
  for (const auto* list : {&result.outputs, &result.gradients}) {
    for (const Value& value : *list) elements += static_cast<std::int64_t>(value.high.size());
  }
  return evaluations(result.forward) + evaluations(result.backward) + elements > most;
}

bool is_open(const JudgedElement& e) { return e.dominating == "arithmetic"; }

const Value* value_of(const Result& result, const TensorVerdict& tensor) {
  const bool gradient = tensor.name.starts_with("grad.");
  return result.find(std::string_view(tensor.name).substr(gradient ? 5 : 4), gradient);
}

}  // namespace

void name_dominating_terms(const CheckQuestion& question, const CheckSettings& settings,
                           const Problem& problem, const std::vector<ActualTensor>& actual,
                           const Result& base, std::vector<TensorVerdict>& tensors) {
  const bool asked = std::any_of(tensors.begin(), tensors.end(), [](const TensorVerdict& tensor) {
    return std::any_of(tensor.worst.begin(), tensor.worst.end(), is_open);
  });
  if (!asked || took_much(base)) return;
  const std::vector<Part> parts = parts_of(question.contract);
  std::vector<Result> without;
  for (const Part& part : parts) {
    CheckQuestion other = question;
    other.contract = part.without;
    without.push_back(Judge(other, settings).evaluate(problem, actual));
  }
  for (TensorVerdict& tensor : tensors) {
    const Value* const all = value_of(base, tensor);
    if (all == nullptr || all->bound.empty()) continue;
    for (JudgedElement& e : tensor.worst) {
      const auto i = static_cast<std::size_t>(e.position);
      if (!is_open(e) || i >= all->bound.size() || !std::isfinite(all->bound[i])) continue;
      double rest = all->bound[i], largest = 0;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        const Value* const less = value_of(without[k], tensor);
        if (less == nullptr || i >= less->bound.size()) continue;
        const double share = all->bound[i] - less->bound[i];
        rest -= share;
        if (share > largest) largest = share, e.dominating = parts[k].name;
      }
      if (rest >= largest) e.dominating = "sums and products";
    }
  }
}

}  // namespace plumbline
