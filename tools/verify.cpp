// plumbline verify: every kernel of this program on the host machine, judged by its contract.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/commands.hpp"
#include "tools/kernels/trial.hpp"
#include "tools/progress.hpp"
#include "tools/text_table.hpp"
#include "verdict/check_report.hpp"

#ifndef PLUMBLINE_SUITES
#define PLUMBLINE_SUITES "fixtures/suites"
#endif

namespace plumbline {
namespace {

struct Arguments {
  std::string op, device = "host", suites = PLUMBLINE_SUITES;
  int seeds = 6;
};

struct Tally {
  std::size_t passed = 0, unprovable = 0, failed = 0, refused = 0;
};

void verify_case(const Kernel& kernel, const KernelCase& one,
                 const std::vector<KernelMachine>& machines, TextTable& table, Tally& tally) {
  std::vector<std::string> row = {kernel.op, kernel.name, one.name, one.family};
  if (!one.refused.empty()) {
    ++tally.refused;
    row.insert(row.end(), {"not taken", "", one.refused});
    table.rows.push_back(std::move(row));
    return;
  }
  Trials trials(kernel, one);
  long double margin = 0;
  bool proven = true;
  for (const KernelMachine& machine : machines) {
    const Trial trial = trials.run(machine);
    margin = std::max(margin, trial.margin());
    if (trial.passed()) continue;
    if (trial.unprovable() && !one.unprovable.empty()) {
      proven = false;
      continue;
    }
    ++tally.failed;
    row.insert(row.end(), {trial.verdict(), short_number(trial.margin()),
                           describe(machine) + ": " + trial.reason()});
    table.rows.push_back(std::move(row));
    return;
  }
  const std::string where =
      machines.front().gpu ? gpu_name() : fmt::format("host, {} machines", machines.size());
  ++(proven ? tally.passed : tally.unprovable);
  row.insert(row.end(), {proven ? "PASS" : "UNPROVABLE", short_number(margin),
                         where + (proven ? "" : "; " + one.unprovable)});
  table.rows.push_back(std::move(row));
}

void run(const Arguments& arguments) {
  if (arguments.device != "host" && arguments.device != "gpu")
    throw Error("--device", in_quotes(arguments.device), "host or gpu");
  const bool gpu = arguments.device == "gpu";
  if (gpu && !has_gpu()) throw Error("--device gpu", "none that this program can use", "a GPU");
  if (arguments.seeds < 1 || arguments.seeds > 1000)
    throw Error("--seeds", std::to_string(arguments.seeds), "1 to 1000");
  std::vector<KernelMachine> machines;
  for (int n = 0; n < (gpu ? 1 : arguments.seeds); ++n) {
    machines.emplace_back(machine_number(static_cast<std::uint64_t>(n)));
    machines.back().gpu = gpu;
  }
  TextTable table{{"op", "kernel", "fixture", "family", "verdict", "margin", "machine"}, {}};
  Tally tally;
  for (const Kernel* kernel : kernels_of(arguments.op)) {
    const Progress progress("verifying " + kernel->op + " " + kernel->name);
    const std::string suite = arguments.suites + "/" + kernel->op + ".json";
    for (const KernelCase& one : cases_of(*kernel, suite))
      verify_case(*kernel, one, machines, table, tally);
  }
  print(as_text(table));
  print(fmt::format("\n{} passed, {} without proof, {} failed, {} not taken\n", tally.passed,
                    tally.unprovable, tally.failed, tally.refused));
  if (tally.failed > 0) throw numbers_disagree();
}

}  // namespace

void add_verify(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("verify", "Run the kernels of this program and judge what they compute");
  command->add_option("op", arguments->op, "one operation; without it, all that have kernels")
      ->type_name("OP");
  command
      ->add_option("--device", arguments->device,
                   "where kernels run: host emulates a GPU and checks races, bounds and waits")
      ->type_name("host|gpu");
  command->add_option("--seeds", arguments->seeds, "machines to try each case on (6)")
      ->type_name("N");
  command->add_option("--suites", arguments->suites, "the folder of the suites")->type_name("DIR");
  command->footer(
      "Every fixture of an operation's suite and odd shapes, in BF16 and F32, forward and all "
      "gradients, under each\nschedule. Exit code 1 unless all that a kernel takes pass.\n"
      "Example:\n"
      "  plumbline verify linear --seeds 20");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plumbline
