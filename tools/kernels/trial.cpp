#include "tools/kernels/trial.hpp"

#include <algorithm>

#include "fixtures/suite.hpp"
#include "reference/error.hpp"

namespace plumbline {
std::string bytes_of(const std::vector<StoredTensor>& tensors) {
  std::string all;
  for (const StoredTensor& tensor : tensors) {
    all += tensor.name + '\0';
    all.append(reinterpret_cast<const char*>(tensor.data),
               static_cast<std::size_t>(count_of(tensor.shape)) * size_of(tensor.dtype));
  }
  return all;
}

namespace {

// BF16 and F32 of one request, each under its schedules.
void add_cases(const Kernel& kernel, const std::string& id, GenerateRequest request,
               std::vector<KernelCase>& cases) {
  request.precision = Precision::f64;  // its results are of no use here
  request.outputs.clear();
  std::vector<Json> schedules = {request.schedule};
  for (const Json& schedule : kernel.schedules) {
    if (std::find(schedules.begin(), schedules.end(), schedule) == schedules.end())
      schedules.push_back(schedule);
  }
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) {
    request.dtype = dtype;
    KernelCase one;
    one.family = request.family;
    one.backward = request.grad;
    if (const auto found = kernel.unprovable.find(id); found != kernel.unprovable.end())
      one.unprovable = found->second;
    try {
      request.contract = nullptr;  // judged by the kernel's own
      const GeneratedCase made = generate(request, 1);
      one.problem = problem_of(made);
      for (const GeneratedTensor& tensor : made.tensors) {
        const bool result = tensor.name.starts_with("out.") || tensor.name.starts_with("grad.");
        if (result && !tensor.name.ends_with(".lo")) one.expected.push_back(tensor.name);
      }
    } catch (const Error& error) {
      throw Error(kernel.op + " " + id + ": " + error.where(), error.found(), error.expected());
    }
    for (const Json& schedule : schedules) {
      one.name = id + " " + std::string(name_of(dtype));
      if (!schedule.empty()) one.name += " " + schedule.dump();
      one.problem.schedule = schedule;
      one.refused = kernel.refuses(one.problem);
      cases.push_back(one);
    }
  }
}

}  // namespace

bool Trial::passed() const {
  return crime.empty() && report.verdict == Verdict::pass && missing.empty() &&
         report.not_an_output.empty();
}

bool Trial::unprovable() const {
  if (!crime.empty() || report.verdict != Verdict::unprovable || !missing.empty() ||
      !report.not_an_output.empty())
    return false;
  return std::all_of(report.tensors.begin(), report.tensors.end(),
                     [](const TensorVerdict& tensor) { return tensor.counts[1] == 0; });
}

std::string Trial::verdict() const {
  if (!crime.empty()) return "CRIME";
  if (!missing.empty() || !report.not_an_output.empty()) return "INCOMPLETE";
  return std::string(name_of(report.verdict));
}

std::string Trial::reason() const {
  if (!crime.empty()) return crime;
  if (!missing.empty()) return missing + " is not among the results";
  for (const std::string& name : report.not_an_output) return name + " is no output";
  for (const TensorVerdict& tensor : report.tensors) {
    if (tensor.verdict != report.verdict) continue;
    std::string text = tensor.name;
    if (!tensor.reason.empty()) return text + ": " + tensor.reason;
    if (tensor.worst.empty()) return text;
    const JudgedElement& worst = tensor.worst.front();
    Shape shape = tensor.shape;
    if (tensor.selection && !shape.empty()) shape.pop_back();
    text += to_string(index_of(shape, worst.position)) + ": " + std::to_string(worst.actual.high) +
            " for " + std::to_string(worst.wanted.high);
    return worst.why.empty() ? text : text + ", " + worst.why;
  }
  return "";
}

long double Trial::margin() const {
  long double most = 0;
  for (const TensorVerdict& tensor : report.tensors) most = std::max(most, tensor.margin);
  return most;
}

Trial Trials::run(const KernelMachine& machine) {
  Trial trial;
  Bench bench(machine);
  kernel_.run(bench, case_.problem, case_.backward);
  trial.crime = bench.finish();
  trial.results = bench.results();
  if (!trial.crime.empty()) return trial;
  for (const std::string& name : case_.expected) {
    const bool there = std::any_of(trial.results.begin(), trial.results.end(),
                                   [&](const StoredTensor& tensor) { return tensor.name == name; });
    if (!there) trial.missing = name;
  }
  const Json declared = kernel_.contract(case_.problem);
  const KernelContract contract = contract_on(
      declared, machine.gpu ? device::host::Products::truncated : machine.options.products);
  const bool truncated = contract.accumulator.block > 0;
  const std::string key = (truncated ? "t" : "n") + bytes_of(trial.results);
  const auto found = judged_.find(key);
  if (found != judged_.end()) {
    trial.report = found->second;
    return trial;
  }
  CheckQuestion question;
  question.operation = &operation(kernel_.op);
  question.problem = case_.problem;
  question.actual = trial.results;
  question.contract = contract;
  CheckSettings settings;
  settings.worst = 1;
  settings.hints = false;
  trial.report = check(question, settings);
  judged_.emplace(key, trial.report);
  return trial;
}

std::vector<KernelCase> cases_of(const Kernel& kernel, const std::string& suite) {
  std::vector<KernelCase> cases;
  if (!suite.empty()) {
    for (const SuiteEntry& entry : read_suite(suite))
      add_cases(kernel, entry.id, entry.request, cases);
  }
  for (std::size_t i = 0; i < kernel.odd.size(); ++i) {
    Json json = kernel.odd[i];
    json["op"] = kernel.op;
    const std::string id = json.value("id", "odd_" + std::to_string(i));
    json.erase("id");
    add_cases(kernel, id, generate_request(json, kernel.op + " " + id), cases);
  }
  return cases;
}

device::host::Options machine_number(std::uint64_t n) {
  using device::host::Products;
  constexpr Products models[] = {Products::sequential, Products::once, Products::truncated};
  device::host::Options options;
  options.seed = n + 1;
  options.late = n % 2 == 0;
  options.products = models[n % 3];
  return options;
}

std::string describe(const KernelMachine& machine) {
  using device::host::Products;
  if (machine.gpu) return gpu_name();
  const device::host::Options& options = machine.options;
  std::string text = "seed " + std::to_string(options.seed) + (options.late ? " late" : " early");
  if (options.products == Products::sequential) return text + " sequential";
  return text + (options.products == Products::once ? " once" : " truncated");
}

}  // namespace plumbline
