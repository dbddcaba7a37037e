#include "verdict/check.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "reference/error.hpp"
#include "verdict/hints.hpp"
#include "verdict/terms.hpp"

namespace plumbline {
namespace {

template <class List> bool holds(const List& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& info) { return info.name == name; });
}
const OutputInfo* output_of(const Operation& operation, std::string_view name) {
  for (const OutputInfo& output : operation.outputs) {
    if (output.name == name) return &output;
  }
  return nullptr;
}

std::vector<std::string> axes_of(const Operation& operation, const ActualTensor& actual) {
  std::string letters;
  if (actual.gradient) {
    for (const TensorInfo& input : operation.inputs) {
      if (input.name == actual.name) letters = input.letters;
    }
  } else if (const OutputInfo* output = output_of(operation, actual.name)) {
    letters = output->letters;
  }
  std::vector<std::string> axes;
  std::string word;
  for (const char c : letters + " ") {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      axes.push_back(std::exchange(word, {}));
    }
  }
  if (axes.size() != actual.tensor.shape.size()) {
    axes.clear();
    for (std::size_t i = 0; i < actual.tensor.shape.size(); ++i)
      axes.push_back("axis " + std::to_string(i));
  }
  return axes;
}

bool same_bytes(const StoredTensor& a, const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto bytes = static_cast<std::size_t>(count_of(a.shape)) * size_of(a.dtype);
  return bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0;
}

StoredTensor given_from(const ActualTensor& actual) {
  StoredTensor tensor = actual.tensor;
  tensor.name = "given." + actual.name;
  tensor.stride = row_major(tensor.shape);
  tensor.present = true;
  return tensor;
}

// Stages of the actual in one evaluation: selections alone, or every one.
class Stages {
 public:
  Stages(const CheckQuestion& question, const std::vector<ActualTensor>& actual)
      : operation_(*question.operation), problem_(question.problem) {
    for (const ActualTensor& each : actual) {
      if (each.gradient || !is_stage(operation_, each.name) || problem_.given.count(each.name) > 0)
        continue;
      const auto role = selection_role(operation_, each.name);
      role ? selections_.push_back(&each) : reals_.push_back(&each);
    }
    // Indices say what flags say, but under a threshold, where there may be more of them than slots.
    if (selections_.size() > 1) {
      const bool flags =
          selection_question(operation_, problem_.options, selections_.front()->name).threshold;
      std::stable_partition(selections_.begin(), selections_.end(), [&](const ActualTensor* each) {
        return is_integer(each->tensor.dtype) != flags;
      });
      selections_.resize(1);
    }
  }

  bool any_selection() const { return !selections_.empty(); }
  bool any_real() const { return !reals_.empty(); }
  bool is_selection(std::string_view name) const {
    return selection_role(operation_, name).has_value();
  }
  Problem with_selections() const { return with({}, false); }
  Problem with_all() const { return with({}, true); }
  Problem with_all_but(std::string_view name) const { return with(name, true); }

 private:
  Problem with(std::string_view left_out, bool reals) const {
    Problem problem = problem_;
    const auto role = selection_role(operation_, left_out);
    const auto supply = [&](const ActualTensor& each) {
      problem.given.insert_or_assign(each.name, given_from(each));
    };
    // What is judged is not supplied, and a selection is not judged by scores that were rounded for storing.
    if (!role) {
      for (const ActualTensor* each : selections_) supply(*each);
    }
    if (reals) {
      for (const ActualTensor* each : reals_) {
        if (each->name != left_out && !(role && each->name == role->scores)) supply(*each);
      }
    }
    return problem;
  }

  const Operation& operation_;
  const Problem& problem_;
  std::vector<const ActualTensor*> selections_, reals_;
};

class Checker {
 public:
  Checker(const CheckQuestion& question, const CheckSettings& settings, CheckReport& report)
      : question_(question),
        settings_(settings),
        report_(report),
        actual_(results_in(question.actual)),
        stages_(question, actual_),
        judge_(question, settings) {}

  void run() {
    report_.op = question_.operation->name;
    report_.contract = question_.contract.name;
    report_.golden = question_.golden_path;
    report_.actual = question_.actual_path;
    report_.options = question_.problem.options;
    list_tensors();
    std::optional<Result> selected, staged;
    if (stages_.any_selection()) selected = attempt(stages_.with_selections(), to_judge_);
    const Result plain =
        judge_.evaluate(question_.problem, selected ? selections_only() : to_judge_);
    if (stages_.any_real()) staged = attempt(stages_.with_all(), outputs_only());
    for (const ActualTensor& each : to_judge_)
      report_.tensors.push_back(judged(each, plain, selected, staged));
    order_tensors();
    const Problem judged_from = selected ? stages_.with_selections() : question_.problem;
    name_dominating_terms(question_, settings_, judged_from, to_judge_,
                          selected ? *selected : plain, report_.tensors);
    for (const TensorVerdict& tensor : report_.tensors)
      report_.verdict = worse(report_.verdict, tensor.verdict);
    if (settings_.hints && report_.verdict == Verdict::fail)
      report_.hints = hints_of(question_, settings_, judged_from, to_judge_, report_);
  }

 private:
  std::vector<ActualTensor> selections_only() const {
    std::vector<ActualTensor> list;
    for (const ActualTensor& each : to_judge_) {
      if (!each.gradient && stages_.is_selection(each.name)) list.push_back(each);
    }
    return list;
  }
  std::vector<ActualTensor> outputs_only() const {
    std::vector<ActualTensor> list;
    for (const ActualTensor& each : to_judge_) {
      if (!each.gradient) list.push_back(each);
    }
    return list;
  }
  std::optional<Result> attempt(const Problem& problem,
                                const std::vector<ActualTensor>& wanted) const {
    try {
      return judge_.evaluate(problem, wanted);
    } catch (const Error&) {
      return {};  // a stage that no evaluation can take (a duplicate index, a NaN) is judged by itself
    }
  }

  TensorVerdict judged(const ActualTensor& each, const Result& plain,
                       const std::optional<Result>& selected,
                       const std::optional<Result>& staged) const {
    const Operation& operation = *question_.operation;
    std::vector<TensorVerdict> ways;
    const auto add = [&](const Result& result, const Problem& problem, const char* basis) {
      if (result.find(each.name, each.gradient) == nullptr) return;
      ways.push_back(judge_.verdict_on(each, result, problem));
      ways.back().basis = basis;
    };
    const bool selection = !each.gradient && stages_.is_selection(each.name);
    if (!each.gradient && stages_.any_real()) {
      if (is_stage(operation, each.name)) {
        const Problem others = stages_.with_all_but(each.name);
        if (const auto result = attempt(others, {each}))
          add(*result, others, "the kernel's other stages");
      } else if (staged) {
        add(*staged, stages_.with_all(), "the kernel's stages");
      }
    }
    if (ways.empty() || ways.front().verdict != Verdict::pass) {
      if (!selection && selected)
        add(*selected, stages_.with_selections(), "the kernel's selection");
      if (selection || !selected) add(plain, question_.problem, "");
    }
    if (ways.empty()) {
      TensorVerdict none;
      none.actual = each.tensor.name;
      none.verdict = Verdict::fail;
      none.reason = "the operation does not return it for this case";
      ways.push_back(none);
    }
    auto best = std::min_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
      return a.verdict < b.verdict;
    });
    best->name = (each.gradient ? "grad." : "out.") + each.name;
    best->axes = axes_of(operation, each);
    return *best;
  }

  void list_tensors() {
    const Operation& operation = *question_.operation;
    bool gradients = false;
    std::set<std::string> found;
    for (const ActualTensor& each : actual_) {
      const bool is_output =
          each.gradient ? std::any_of(operation.inputs.begin(), operation.inputs.end(),
                                      [&](const TensorInfo& info) {
                                        return info.differentiable && info.name == each.name;
                                      })
                        : output_of(operation, each.name) != nullptr;
      if (!is_output) {
        report_.not_an_output.push_back(each.tensor.name);
        continue;
      }
      gradients = gradients || each.gradient;
      found.insert((each.gradient ? "grad." : "out.") + each.name);
      to_judge_.push_back(each);
    }
    if (to_judge_.empty()) {
      throw Error(question_.actual_path,
                  "no out.* or grad.* tensor, nor peer.*, of " + operation.name,
                  "at least one to judge");
    }
    for (const OutputInfo& output : operation.outputs) {
      if (!output.on_request && found.count("out." + output.name) == 0)
        report_.not_in_actual.push_back("out." + output.name);
    }
    for (const TensorInfo& input : operation.inputs) {
      if (gradients && input.differentiable && question_.problem.in.count(input.name) > 0 &&
          found.count("grad." + input.name) == 0)
        report_.not_in_actual.push_back("grad." + input.name);
    }
    for (const StoredTensor& each : question_.actual) {
      const auto differs = [&](std::string_view place, const Tensors& tensors) {
        if (!each.name.starts_with(place)) return false;
        const auto other = tensors.find(std::string_view(each.name).substr(place.size()));
        return other != tensors.end() && !same_bytes(each, other->second);
      };
      const Problem& problem = question_.problem;
      if (differs("in.", problem.in) || differs("given.", problem.given) ||
          differs("cot.", problem.cot))
        report_.inputs_differ.push_back(each.name);
    }
  }

  void order_tensors() {
    const Operation& operation = *question_.operation;
    std::map<std::string, std::size_t> place;
    for (const OutputInfo& output : operation.outputs)
      place.emplace("out." + output.name, place.size());
    for (const TensorInfo& input : operation.inputs)
      place.emplace("grad." + input.name, place.size());
    std::stable_sort(report_.tensors.begin(), report_.tensors.end(),
                     [&](const TensorVerdict& a, const TensorVerdict& b) {
                       return place[a.name] < place[b.name];
                     });
  }

  const CheckQuestion& question_;
  const CheckSettings& settings_;
  CheckReport& report_;
  std::vector<ActualTensor> actual_, to_judge_;
  Stages stages_;
  Judge judge_;
};

}  // namespace

const TensorVerdict* CheckReport::find(std::string_view name) const {
  for (const TensorVerdict& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::vector<ActualTensor> results_in(const std::vector<StoredTensor>& actual) {
  std::map<std::string, const StoredTensor*, std::less<>> by_name;
  for (const StoredTensor& tensor : actual) by_name.emplace(tensor.name, &tensor);
  std::vector<ActualTensor> results;
  for (const auto& [full, tensor] : by_name) {
    std::string_view name = full;
    const bool peer = name.starts_with("peer.");
    if (peer) name.remove_prefix(5);
    const bool gradient = name.starts_with("grad.");
    if ((!gradient && !name.starts_with("out.")) || name.ends_with(".lo")) continue;
    if (peer && by_name.find(name) != by_name.end()) continue;  // its own result comes first
    ActualTensor result;
    result.name = name.substr(gradient ? 5 : 4);
    result.gradient = gradient;
    result.tensor = *tensor;
    if (const auto low = by_name.find(full + ".lo"); low != by_name.end()) {
      if (low->second->dtype != Dtype::f64 || low->second->shape != tensor->shape ||
          !is_real(tensor->dtype)) {
        throw Error(low->first,
                    std::string(name_of(low->second->dtype)) + " " + to_string(low->second->shape),
                    "F64 " + to_string(tensor->shape) + " beside real numbers");
      }
      result.tensor.low = std::make_shared<const StoredTensor>(*low->second);
    }
    results.push_back(std::move(result));
  }
  return results;
}

bool is_stage(const Operation& operation, std::string_view name) {
  const OutputInfo* const output = output_of(operation, name);
  return output != nullptr && output->on_request && holds(operation.given, name);
}

CheckReport check(const CheckQuestion& question, const CheckSettings& settings) {
  CheckReport report;
  Checker(question, settings, report).run();
  return report;
}

}  // namespace plumbline
