#include "bindings/core/call.hpp"

#include <algorithm>
#include <thread>

#include "fixtures/c_order.hpp"
#include "fixtures/case.hpp"
#include "fixtures/families.hpp"
#include "fixtures/strict_json.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "reference/registry/bounds.hpp"
#include "verdict/contract.hpp"

namespace plumbline::bindings {
namespace {

Json object_in(std::string_view text, const std::string& where) {
  if (text.empty()) return Json::object();
  Json json = parse_json(text, where);
  if (!json.is_object()) throw Error(where, printable(text, 80), "a JSON object");
  return json;
}

int threads_of(int asked) {
  constexpr int most = 1024;
  if (asked < 0 || asked > most)
    throw Error("threads", std::to_string(asked), "0 (all cores) to " + std::to_string(most));
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

bool is_result(const StoredTensor& tensor) {
  const std::string_view place = split_tensor_name(tensor.name).place;
  return place == "out" || place == "grad" || place == "peer";
}

KernelContract contract_in(std::string_view text) {
  if (text.find('{') == std::string_view::npos) return contract_named(text);
  return contract_from_json(object_in(text, "contract"));
}

KernelContract required_contract(const Call& call) {
  if (call.contract.empty())
    throw Error("contract", "nothing", "the name of a preset, or an object");
  return contract_in(call.contract);
}

Problem problem_in(const Call& call) {
  for (const StoredTensor& tensor : call.tensors) {
    if (is_result(tensor))
      throw Error(tensor.name, "a result", "in.*, given.* or cot.*; only check takes results");
  }
  Problem problem = problem_of(call.tensors);
  problem.options = object_in(call.options, "options");
  problem.schedule = object_in(call.schedule, "schedule");
  problem.outputs = call.outputs;
  return problem;
}

Evaluation how_of(const Call& call) {
  Evaluation how;
  if (!call.precision.empty()) how.precision = precision_named(call.precision, "precision");
  how.backward = call.gradient;
  how.threads = threads_of(call.threads);
  return how;
}

}  // namespace

Result evaluate(const Call& call) {
  const Operation& op = operation(call.op);
  const Problem problem = problem_in(call);
  const Evaluation how = how_of(call);
  if (call.contract.empty()) return op.evaluate(problem, how);
  const KernelContract contract = contract_in(call.contract);
  Result result = op.evaluate(problem, how);
  add_bounds(op, problem, how, contract, result);
  return result;
}

Result bound(const Call& call) {
  const Operation& op = operation(call.op);
  const KernelContract contract = required_contract(call);
  Evaluation how = how_of(call);
  how.contract = &contract;
  return op.evaluate(problem_in(call), how);
}

CheckReport check(const Call& call, const CheckSettings& settings) {
  CheckQuestion question;
  question.operation = &operation(call.op);
  question.contract = required_contract(call);
  question.golden_path = "the inputs";
  question.actual_path = "the results";
  Call ordered = call;  // verdicts read elements in C order
  ordered.tensors.clear();
  for (const StoredTensor& tensor : call.tensors) {
    (is_result(tensor) ? question.actual : ordered.tensors).push_back(in_c_order(tensor));
  }
  question.problem = problem_in(ordered);
  CheckSettings how = settings;
  how.threads = threads_of(call.threads);
  return plumbline::check(question, how);
}

Json contract_of(std::string_view text) {
  if (!text.empty()) return to_json(contract_in(text));
  Json list = Json::array();
  for (const ContractPreset& preset : contract_presets())
    list.push_back({{"name", preset.name}, {"doc", preset.doc}});
  return list;
}

Json operation_list() {
  Json list = Json::array();
  for (const Operation* each : operations())
    list.push_back({{"name", each->name}, {"summary", each->summary}});
  return list;
}

Json resolve(std::string_view op, std::string_view options) {
  return operation(op).resolve(object_in(options, "options"));
}

Json family_list() {
  Json list = Json::array();
  for (const Family& family : families())
    list.push_back({{"name", family.name}, {"doc", family.doc}});
  return list;
}

}  // namespace plumbline::bindings
