// plumbline gradcheck: the gradients of a case against differences of its values.
#include "gradcheck/gradcheck.hpp"

#include <fmt/format.h>

#include <memory>

#include "fixtures/case.hpp"
#include "reference/error.hpp"
#include "tools/commands.hpp"
#include "tools/progress.hpp"
#include "tools/text_table.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string path;
  GradcheckSettings settings;
  bool json = false;
};

void check(const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(option, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
}

void print_text(const GradcheckReport& report) {
  auto rows = table_of(report);
  TextTable table{rows.front(), {rows.begin() + 1, rows.end()}};
  std::string outputs;
  for (const std::string& name : report.cotangents) outputs += (outputs.empty() ? "" : ", ") + name;
  print(fmt::format("{}: gradient of {}{}\n\n{}\n{}\n{}\n", report.op, outputs,
                    report.surrogate ? " (its surrogate)" : "", as_text(table), notes_of(report),
                    report.pass() ? "agree" : "disagree"));
}

void run(const Arguments& arguments) {
  constexpr std::int64_t most = 1'000'000'000;
  check("--max-coordinates", arguments.settings.max_coordinates, 0, most);
  check("--directions", arguments.settings.directions, 1, most);
  check("--threads", arguments.settings.threads, 1, 1024);
  const Case problem = load_case(arguments.path);
  const Operation& operation = plumbline::operation(problem.op());
  GradcheckReport report;
  {
    const Progress progress("differentiating " + operation.name);
    report = gradcheck(operation, problem.problem, arguments.settings);
  }
  if (arguments.json) {
    print_json(to_json(report));
  } else {
    print_text(report);
  }
  if (!report.pass()) throw numbers_disagree();
}

}  // namespace

void add_gradcheck(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  GradcheckSettings& settings = arguments->settings;
  CLI::App* const command =
      app.add_subcommand("gradcheck", "Check the gradients of a case by differences in mp100");
  command->add_option("case", arguments->path, "the case, a safetensors file")
      ->required()
      ->type_name("CASE");
  command->add_flag("--json", arguments->json, "the same as JSON");
  command
      ->add_option("--max-coordinates", settings.max_coordinates,
                   "inputs with more are checked along random directions (4000)")
      ->type_name("N");
  command->add_option("--directions", settings.directions, "how many of them (4)")->type_name("N");
  command->add_option("--seed", settings.seed, "of the directions (0)")->type_name("N");
  command->add_option("--threads", settings.threads, "the report does not depend on it (2)")
      ->type_name("N");
  command->footer(fmt::format(
      "Every coordinate of every differentiable input is displaced, with Richardson's "
      "extrapolation. An input passes\n"
      "with {} digits, relative to its largest gradient, on {} % of its coordinates. Where the "
      "function has a kink\n"
      "within the step, the branch of the point itself is differentiated and the kink is named. "
      "Exit code 1 when a\n"
      "gradient disagrees.\n"
      "Examples:\n"
      "  plumbline gradcheck case.safetensors\n"
      "  plumbline gradcheck case.safetensors --max-coordinates 0 --directions 8 --json",
      gradcheck_digits, gradcheck_share));
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plumbline
