// plumbline contract: the arithmetic a kernel may declare.
#include "verdict/contract.hpp"

#include <memory>

#include "fixtures/strict_json.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/text_table.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string name;
  bool json = false;
};

void list(bool json) {
  nlohmann::json all = nlohmann::json::array();
  TextTable table{{"contract", "what it declares"}, {}};
  for (const ContractPreset& preset : contract_presets()) {
    all.push_back({{"doc", preset.doc}, {"contract", to_json(preset.contract)}});
    table.rows.push_back({std::string(preset.name), std::string(preset.doc)});
  }
  json ? print_json(all) : print(as_text(table));
}

}  // namespace

void add_contract(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("contract", "List the contracts, or print one with every field as JSON");
  const CLI::Option* const name =
      command->add_option("contract", arguments->name, "a preset, or JSON in a file")
          ->type_name("NAME|@FILE");
  command->add_flag("--json", arguments->json, "the list as JSON");
  command->footer(
      "Examples:\n"
      "  plumbline contract\n"
      "  plumbline contract bf16_f32acc\n"
      "  plumbline contract bf16_f32acc > kernel.json; plumbline contract @kernel.json");
  command->callback([arguments, name] {
    name->count() > 0 ? print_json(to_json(contract_of(arguments->name))) : list(arguments->json);
  });
}

}  // namespace plumbline
