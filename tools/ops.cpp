// plumbline ops: the operations, or the page of one.
#include <memory>

#include "reference/error.hpp"
#include "reference/registry/description.hpp"
#include "tools/commands.hpp"
#include "tools/operation_page.hpp"
#include "tools/text_table.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string name;
  bool json = false, names = false, markdown = false;
};

void list(const Arguments& arguments) {
  nlohmann::json json = nlohmann::json::array();
  TextTable table{{"operation", "what it computes"}, {}};
  std::string names;
  for (const Operation* operation : operations()) {
    json.push_back({{"name", operation->name}, {"summary", operation->summary}});
    table.rows.push_back({operation->name, operation->summary});
    names += operation->name + "\n";
  }
  if (arguments.json) {
    print_json(json);
  } else {
    print(arguments.names ? names : arguments.markdown ? as_markdown(table) : as_text(table));
  }
}

void show(const Arguments& arguments) {
  const Operation& operation = plumbline::operation(arguments.name);
  if (arguments.json) {
    print_json(description_of(operation));
  } else if (arguments.names) {
    print(operation.name + "\n");
  } else {
    print(arguments.markdown ? page_markdown(operation) : page_text(operation));
  }
}

}  // namespace

void add_ops(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("ops", "List the operations, or show the page of one");
  CLI::Option* const name =
      command->add_option("op", arguments->name, "one of them: formula, tensors, options, presets")
          ->type_name("OP");
  CLI::Option* const json = command->add_flag("--json", arguments->json, "the same as JSON");
  CLI::Option* const names =
      command->add_flag("--names", arguments->names, "only names, one a line");
  command->add_flag("--markdown", arguments->markdown, "the same as markdown")
      ->excludes(json)
      ->excludes(names);
  json->excludes(names);
  command->footer(
      "Examples:\n"
      "  plumbline ops\n"
      "  plumbline ops csa_indexer_loss\n"
      "  plumbline ops csa_indexer_loss --json");
  command->callback([arguments, name] { name->count() > 0 ? show(*arguments) : list(*arguments); });
}

}  // namespace plumbline
