// plumbline fixtures: is a folder of fixtures what it was, does it come out the same again, and
// what moved.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "fixtures/diff.hpp"
#include "fixtures/manifest.hpp"
#include "fixtures/suite.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/progress.hpp"
#include "tools/text_table.hpp"

#ifndef PLUMBLINE_VERSION
#define PLUMBLINE_VERSION "unversioned"
#endif

namespace plumbline {
namespace {

struct Arguments {
  std::string folder, before, after;
  bool check = false, json = false;
  int threads = 0;
};

void report(const std::vector<std::string>& complaints, const std::string& fine) {
  for (const std::string& complaint : complaints) print(complaint + "\n");
  if (!complaints.empty()) throw numbers_disagree();
  print(fine + "\n");
}

std::string counted(const std::string& folder) {
  return std::to_string(read_manifest(folder)["fixtures"].size()) + " fixtures in " +
         printable(folder);
}

void verify(const Arguments& arguments) {
  report(verify_fixtures(arguments.folder),
         counted(arguments.folder) + " are as " + manifest_name + " says");
}

void regenerate(const Arguments& arguments) {
  SuiteRun run;
  run.tool = PLUMBLINE_VERSION;
  run.threads = threads_of(arguments.threads);
  run.read_contract = contract_in;
  std::unique_ptr<Progress> progress;
  run.report = [&](const SuiteEntry& entry, bool, bool done) {
    progress.reset();
    if (!done) progress = std::make_unique<Progress>("generating " + entry.id);
  };
  if (arguments.check) {
    report(check_regeneration(arguments.folder, run),
           counted(arguments.folder) + " come out the same, byte for byte");
    return;
  }
  write_suite(entries_of(read_manifest(arguments.folder)), arguments.folder, run);
  print(counted(arguments.folder) + " made anew\n");
}

void diff(const Arguments& arguments) {
  const std::vector<TensorChange> changes = diff_fixtures(arguments.before, arguments.after);
  if (arguments.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const TensorChange& change : changes) {
      nlohmann::json json = {
          {"file", change.file}, {"tensor", change.tensor}, {"what", change.what}};
      if (change.moved > 0) {
        json.update({{"moved", change.moved},
                     {"count", change.count},
                     {"element", change.worst},
                     {"ulp", fmt::format("{:.4g}", change.ulp)},
                     {"before", change.before},
                     {"after", change.after}});
      }
      list.push_back(std::move(json));
    }
    print_json(list);
  } else if (changes.empty()) {
    print("nothing moved\n");
  } else {
    TextTable table{{"file", "tensor", "what", "elements", "most ulp", "at", "before", "after"},
                    {}};
    for (const TensorChange& change : changes) {
      const bool moved = change.moved > 0;
      table.rows.push_back({printable(change.file), printable(change.tensor), change.what,
                            moved ? fmt::format("{} of {}", change.moved, change.count) : "",
                            moved ? fmt::format("{:.4g}", change.ulp) : "",
                            moved ? std::to_string(change.worst) : "", change.before,
                            change.after});
    }
    print(as_text(table));
  }
  if (!changes.empty()) throw numbers_disagree();
}

}  // namespace

void add_fixtures(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("fixtures", "Verify, regenerate and compare folders of fixtures");
  command->require_subcommand(1);
  CLI::App* const verifies =
      command->add_subcommand("verify", "Hold every file against MANIFEST.json");
  CLI::App* const regenerates =
      command->add_subcommand("regen", "Make every fixture of a folder again");
  CLI::App* const differs =
      command->add_subcommand("diff", "What moved between two files or folders, by how many ulp");
  for (CLI::App* const each : {verifies, regenerates}) {
    each->add_option("folder", arguments->folder, "a folder with MANIFEST.json")
        ->required()
        ->type_name("DIR");
  }
  regenerates->add_flag("--check", arguments->check, "write nothing there, compare the bytes");
  regenerates
      ->add_option("--threads", arguments->threads,
                   "0 means one for each core; the bytes do not depend on it")
      ->type_name("N");
  differs->add_option("before", arguments->before, "the older file or folder")
      ->required()
      ->type_name("OLD");
  differs->add_option("after", arguments->after, "the newer one")->required()->type_name("NEW");
  differs->add_flag("--json", arguments->json, "the same as JSON");
  command->footer(
      "Exit code 1 when something is not as it was.\n"
      "Examples:\n"
      "  plumbline fixtures verify fixtures/goldens/topk\n"
      "  plumbline fixtures regen --check fixtures/goldens/topk\n"
      "  plumbline fixtures diff before after");
  verifies->callback([arguments] { verify(*arguments); });
  regenerates->callback([arguments] { regenerate(*arguments); });
  differs->callback([arguments] { diff(*arguments); });
}

}  // namespace plumbline
