#include <algorithm>

#include "reference/registry/make_operation.hpp"
#include "reference/registry/table.hpp"

namespace plumbline {

std::span<const Operation* const> operations() {
  static const std::vector<const Operation*> sorted = [] {
    std::vector<const Operation*> all = table_of_losses();
    for (const Operation* each : table_of_csa()) all.push_back(each);
    for (const Operation* each : table_of_mla()) all.push_back(each);
    std::sort(all.begin(), all.end(),
              [](const Operation* x, const Operation* y) { return x->name < y->name; });
    return all;
  }();
  return sorted;
}

const Operation& operation(std::string_view name) {
  std::vector<std::string> names;
  for (const Operation* each : operations()) {
    if (each->name == name) return *each;
    names.push_back(each->name);
  }
  throw Error("op", json_text(Json(std::string(name))), "one of " + joined(names));
}

const Value* Result::find(std::string_view name, bool gradient) const {
  const std::vector<Value>& list = gradient ? gradients : outputs;
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Value& value) { return value.name == name; });
  return found == list.end() ? nullptr : &*found;
}

Run make_run(const Operation& operation, const Problem& problem, const Evaluation& how) {
  Run run;
  OptionReader reader(problem.schedule, "schedule.");
  run.schedule.fields(reader);
  reader.finish();
  for (const auto& [key, value] : problem.schedule.items()) {
    if (std::find(operation.honours.begin(), operation.honours.end(), key) ==
        operation.honours.end()) {
      throw Error("schedule." + key, "a key that " + operation.name + " does not honour",
                  "one of " + joined(operation.honours));
    }
    if (value.is_number() && value.get<double>() < 0)
      throw Error("schedule." + key, value.dump(), "a number >= 0");
  }
  for (const std::string& name : problem.outputs) {
    std::vector<std::string> names{"all"};
    bool known = name == "all";
    for (const OutputInfo& output : operation.outputs) {
      names.push_back(output.name);
      known = known || output.name == name;
      if (name == "all" || name == output.name) run.outputs.insert(output.name);
    }
    if (!known) throw Error("outputs", json_text(Json(name)), "one of " + joined(names));
  }
  run.threads = how.threads;
  run.surrogate = how.surrogate;
  return run;
}

Tensors given_outputs(const Operation& operation, const Problem& problem, bool allowed) {
  Tensors outputs;
  if (!allowed) return outputs;
  for (const auto& [name, tensor] : problem.given) {
    const auto same = [&name = name](const auto& info) { return info.name == name; };
    if (std::any_of(operation.given.begin(), operation.given.end(), same)) continue;
    const auto output = std::find_if(operation.outputs.begin(), operation.outputs.end(), same);
    if (output == operation.outputs.end()) continue;
    TensorBinder::check_kind(tensor, name, output->kind);
    outputs.emplace(name, tensor);
  }
  return outputs;
}

void check_cotangents(const Operation& operation, const Problem& problem) {
  std::vector<std::string> names;
  for (const TensorInfo& info : operation.cotangents) names.push_back(info.name);
  for (const auto& [name, tensor] : problem.cot) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw Error("cot." + name, "a cotangent the operation does not take",
                  "one of " + joined(names));
    }
    TensorBinder::check_kind(tensor, name, Kind::real);
  }
}

Tensors live_cotangents(const Operation& operation, const Problem& problem, const Tensors& given) {
  static constexpr double zero = 0;
  Tensors live;
  std::vector<std::string> names;
  for (const TensorInfo& info : operation.cotangents) names.push_back(info.name);
  for (const auto& [name, tensor] : problem.cot) {
    StoredTensor used = tensor;
    if (given.find(name) != given.end()) {
      used.data = reinterpret_cast<const std::byte*>(&zero);
      used.dtype = Dtype::f64;
      used.stride.assign(used.shape.size(), 0);
      used.low = used.scale = nullptr;
    }
    live.emplace(name, std::move(used));
  }
  const bool loss = std::find(names.begin(), names.end(), "loss") != names.end();
  if (live.empty() && !loss && !names.empty()) {
    throw Error("cot." + names.front(), "nothing", "a cotangent: the operation has no scalar loss");
  }
  return live;
}

}  // namespace plumbline
