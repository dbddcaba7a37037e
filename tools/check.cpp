// plumbline check: a kernel's results under a contract.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>

#include "fixtures/case.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/progress.hpp"
#include "tools/text_table.hpp"
#include "verdict/check.hpp"
#include "verdict/check_report.hpp"
#include "verdict/compare.hpp"
#include "verdict/contract.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string golden, actual, contract, junit, html, svg;
  bool strict = false, json = false, no_hints = false;
  std::int64_t worst = 5;
  int threads = 0;
};

bool failed(Verdict verdict, bool strict) {
  return verdict >= Verdict::unprovable || (strict && verdict == Verdict::suspect);
}

// Arguments that a shell would cut apart, in quotes.
std::string shell_word(const std::string& text) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=@,:";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void print_element(const TensorVerdict& tensor, const JudgedElement& e) {
  Shape shape = tensor.shape;
  if (tensor.selection && !shape.empty()) shape.pop_back();
  std::string text = "  " + to_string(index_of(shape, e.position)) + "  " +
                     std::string(name_of(e.verdict)) + ", margin " + short_number(e.margin);
  if (tensor.kind == Kind::real && !tensor.selection) text += ", tier 2 " + short_number(e.margin2);
  if (!e.why.empty()) text += ": " + e.why;
  text += "\n";
  if (tensor.kind == Kind::real) {
    text += fmt::format("      expected {}  {}\n      actual   {}  {}\n", decimal(e.wanted),
                        hexadecimal(e.wanted), decimal(e.actual), hexadecimal(e.actual));
    if (e.ulp > 0 && std::isfinite(e.off))
      text += fmt::format("      off by {} = {} ulp, bound {}, most of it {}\n",
                          short_number(e.off), short_number(e.off / e.ulp), short_number(e.bound),
                          e.dominating);
  } else if (!tensor.selection && e.verdict != Verdict::pass) {
    text += fmt::format("      expected {}, actual {}\n", e.wanted_integer, e.actual_integer);
  }
  print(text);
}

void print_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + printable(name);
  print(fmt::format("{}: {}\n", what, list));
}

void print_text(const CheckReport& report) {
  print(fmt::format("{} under {}\n\n", report.op, printable(report.contract)));
  TextTable table{{"tensor", "shape", "dtype", "margin", "tier 2", "beyond", "verdict", "given"},
                  {}};
  for (const TensorVerdict& tensor : report.tensors) {
    const std::int64_t beyond = tensor.counts[1] + tensor.counts[2] + tensor.counts[3];
    table.rows.push_back({printable(tensor.name), to_string(tensor.shape),
                          std::string(name_of(tensor.dtype)), short_number(tensor.margin),
                          short_number(tensor.margin2), beyond > 0 ? std::to_string(beyond) : "",
                          std::string(name_of(tensor.verdict)), tensor.basis});
  }
  print(as_text(table));
  for (const TensorVerdict& tensor : report.tensors) {
    if (tensor.reason.empty() && tensor.worst.empty()) continue;
    print(fmt::format("\n{}{}\n", printable(tensor.name),
                      tensor.reason.empty() ? "" : ": " + printable(tensor.reason)));
    // Of a tensor that passes, the worst one is enough.
    for (const JudgedElement& e : tensor.worst) {
      if (&e != &tensor.worst.front() && e.verdict == Verdict::pass) break;
      print_element(tensor, e);
    }
  }
  if (!report.hints.empty()) {
    print("\nlikely causes\n");
    for (const std::string& hint : report.hints) print("  " + printable(hint, 400) + "\n");
  }
  print_names("\nnot in ACTUAL", report.not_in_actual);
  print_names("\nno outputs of the operation", report.not_an_output);
  print_names("\ninputs that differ between the files", report.inputs_differ);
  print(fmt::format("\n{}\nagain: {}\n", name_of(report.verdict), printable(report.repro, 1000)));
}

// The one asked for, else the one the case declares.
KernelContract contract_for(const Arguments& arguments, const Case& golden) {
  if (!arguments.contract.empty()) return contract_of(arguments.contract);
  const auto declared = golden.metadata.json.find("contract");
  if (declared == golden.metadata.json.end()) {
    throw Error("--contract", "nothing, and no contract in the metadata of the case",
                "a preset or @FILE; plumbline contract lists the presets");
  }
  return declared->is_string() ? contract_named(declared->get<std::string>())
                               : contract_from_json(*declared);
}

void run(const Arguments& arguments) {
  CheckSettings settings;
  settings.threads = threads_of(arguments.threads);
  settings.hints = !arguments.no_hints;
  if (arguments.worst < 0 || arguments.worst > 1'000'000)
    throw Error("--worst", std::to_string(arguments.worst), "0 to 1000000");
  settings.worst = static_cast<std::size_t>(arguments.worst);
  const bool from_file = arguments.contract.starts_with('@');
  check_report_paths(
      {{"--junit", arguments.junit}, {"--html", arguments.html}, {"--svg", arguments.svg}},
      {arguments.golden, arguments.actual, from_file ? arguments.contract.substr(1) : ""});
  CheckQuestion question;
  const Case golden = load_case(arguments.golden);
  question.contract = contract_for(arguments, golden);
  question.operation = &operation(golden.op());
  question.problem = golden.problem;
  question.golden_path = printable(arguments.golden);
  question.actual_path = printable(arguments.actual);
  const SafetensorsFile actual = SafetensorsFile::open(arguments.actual);
  for (const FileTensor& tensor : actual.tensors())
    question.actual.push_back(actual.stored(tensor));
  CheckReport report;
  {
    const Progress progress("judging " + question.operation->name);
    report = check(question, settings);
  }
  report.repro =
      "plumbline check " + shell_word(arguments.golden) + " " + shell_word(arguments.actual);
  if (!arguments.contract.empty()) report.repro += " --contract " + shell_word(arguments.contract);
  write_report(arguments.junit, junit_of(report, arguments.strict));
  write_report(arguments.html, html_of(report));
  write_report(arguments.svg, svg_of(report));
  if (arguments.json) {
    print_json(to_json(report));
  } else {
    print_text(report);
  }
  if (failed(report.verdict, arguments.strict)) throw numbers_disagree();
}

}  // namespace

void add_check(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("check", "Judge a kernel's results by certified bounds");
  command
      ->add_option("golden", arguments->golden,
                   "the case: operation, options and inputs; its results are not looked at")
      ->required()
      ->type_name("GOLDEN|CASE");
  command
      ->add_option("actual", arguments->actual,
                   "the file to judge: its out.* and grad.*, else its peer.*")
      ->required()
      ->type_name("ACTUAL");
  command
      ->add_option("--contract", arguments->contract,
                   "the arithmetic the kernel declares, else what the case says: a preset (see "
                   "plumbline contract) or JSON in "
                   "a file")

      ->type_name("NAME|@FILE");
  command->add_flag("--strict", arguments->strict, "SUSPECT fails too");
  command->add_flag("--json", arguments->json, "the same as JSON");
  command->add_option("--junit", arguments->junit, "a test case for each tensor")
      ->type_name("FILE");
  command->add_option("--html", arguments->html, "one page with pictures")->type_name("FILE");
  command->add_option("--svg", arguments->svg, "the pictures alone")->type_name("FILE");
  command->add_option("--worst", arguments->worst, "elements told of each tensor (5)")
      ->type_name("N");
  command->add_flag("--no-hints", arguments->no_hints,
                    "do not look for causes: no further evaluations");
  command
      ->add_option("--threads", arguments->threads,
                   "0 means one for each core; the report does not depend on it")
      ->type_name("N");
  command->footer(
      "PASS: inside the statistical tier. SUSPECT: outside it, inside the proven bound. FAIL: no "
      "execution that the\n"
      "contract allows gives this. UNPROVABLE: the bound is too wide to say anything. Exit code 1 "
      "for FAIL and\n"
      "UNPROVABLE, and for SUSPECT with --strict.\n"
      "Examples:\n"
      "  plumbline check golden.safetensors kernel.safetensors --contract bf16_f32acc\n"
      "  plumbline check case.safetensors kernel.safetensors --contract @kernel.json --html "
      "report.html");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plumbline
