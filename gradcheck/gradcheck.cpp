#include "gradcheck/gradcheck.hpp"

#include <algorithm>

#include "gradcheck/check_input.hpp"
#include "reference/error.hpp"

namespace plumbline {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of the outputs on request, exactly those whose cotangents are given.
std::vector<std::string> needed_outputs(const Operation& operation, const Problem& problem) {
  std::vector<std::string> names;
  for (const OutputInfo& output : operation.outputs) {
    if (output.on_request && problem.cot.contains(output.name)) names.push_back(output.name);
  }
  return names;
}

std::string failure_of(const Value* gradient, const Shape& shape) {
  if (gradient == nullptr) return "the operation returns no gradient for it";
  if (gradient->shape == shape) return {};
  return "the gradient has shape " + to_string(gradient->shape) + ", the input " + to_string(shape);
}

}  // namespace

double GradcheckInput::share() const {
  return coordinates == 0 ? 100
                          : 100 * static_cast<double>(checked) / static_cast<double>(coordinates);
}

bool GradcheckInput::pass() const {
  return failure.empty() && wrong_elements == 0 && share() >= gradcheck_share &&
         digits >= gradcheck_digits;
}

bool GradcheckReport::pass() const {
  return unexpected.empty() &&
         std::all_of(inputs.begin(), inputs.end(),
                     [](const GradcheckInput& input) { return input.pass(); });
}

GradcheckReport gradcheck(const Operation& operation, const Problem& problem,
                          const GradcheckSettings& settings) {
  if (operation.cotangents.empty()) {
    throw Error("op", operation.name, "an operation with a gradient");
  }
  Problem asked = problem;
  asked.outputs = needed_outputs(operation, problem);
  Evaluation how;
  how.precision = Precision::mp100;
  how.backward = true;
  how.threads = settings.threads;
  const Result base = operation.evaluate(asked, how);

  GradcheckReport report;
  report.op = operation.name;
  report.surrogate = operation.has_surrogate(problem.options);
  report.seed = settings.seed;
  const differences::Cotangents cotangents = differences::read_cotangents(operation, asked, base);
  for (const differences::Cotangent& cotangent : cotangents)
    report.cotangents.push_back(cotangent.output);

  std::vector<std::string> names;
  for (const TensorInfo& info : operation.inputs) {
    const auto found = asked.in.find(info.name);
    if (!info.differentiable || found == asked.in.end()) continue;
    names.push_back(info.name);
    const Value* gradient = base.find(info.name, true);
    const std::string failure = failure_of(gradient, found->second.shape);
    if (!failure.empty()) {
      GradcheckInput input;
      input.name = info.name;
      input.shape = found->second.shape;
      input.coordinates = count_of(input.shape);
      input.failure = failure;
      report.inputs.push_back(std::move(input));
      continue;
    }
    differences::InputCheck check(operation, asked, cotangents, info.name,
                                  differences::exact_of(*gradient), settings, report.surrogate);
    report.inputs.push_back(check.run());
  }
  for (const Value& gradient : base.gradients) {
    if (!has(names, gradient.name)) report.unexpected.push_back(gradient.name);
  }
  return report;
}

}  // namespace plumbline
