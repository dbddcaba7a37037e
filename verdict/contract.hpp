// verdict/contract.hpp
//
// Contracts as text: the JSON of a contract, the presets, and a contract by name. docs/contracts.md explains the
// fields; reference/numeric/contract.hpp is the plain data.
// Guarantees: reading is strict; an unknown key, a wrong type or a number that no kernel can have is an Error naming
// `contract.<key>`. What a contract does not name has the value of ieee_f32, or of the preset its key `preset` names.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "reference/numeric/contract.hpp"

namespace plumbline {

// What is promised of a selection beyond the set: that is judged by its scores in any case.
struct SelectionRule {
  enum class Order { any, best_first } order = Order::any;
  enum class Tie { any, lowest_index, highest_index } tie = Tie::any;
};
struct KernelContract : Contract {  // the arithmetic, and what needs none
  SelectionRule selection;
};

struct ContractPreset {
  std::string_view name, doc;
  KernelContract contract;
};
std::span<const ContractPreset> contract_presets();
const KernelContract& contract_named(std::string_view name);  // Error for an unknown name

KernelContract contract_from_json(const nlohmann::json& json);
// As suites and cases name it: a preset or an object.
Contract contract_in(const nlohmann::json& json);
nlohmann::json to_json(const KernelContract& contract);  // every field

}  // namespace plumbline
