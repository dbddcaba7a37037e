// plumbline compare: what one file says against what another says.
#include <fmt/format.h>

#include <memory>

#include "fixtures/case.hpp"
#include "fixtures/text.hpp"
#include "tools/commands.hpp"
#include "tools/text_table.hpp"
#include "verdict/compare.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string golden, actual;
  bool json = false;
};

// Files of other programs need no metadata to be compared; where it is there, it must be right.
ComparedFile open(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  ComparedFile compared;
  compared.path = file.path();
  for (const FileTensor& tensor : file.tensors()) compared.tensors.push_back(file.stored(tensor));
  if (file.metadata().contains("plumbline"))
    compared.precision = read_case_metadata(file).precision;
  return compared;
}

std::string short_number(long double value) {
  return fmt::format("{:.3g}", static_cast<double>(value));
}

std::vector<std::string> row_of(const TensorComparison& tensor) {
  const std::string name = printable(tensor.golden), shape = to_string(tensor.shape);
  const std::string verdict(name_of(tensor.agreement));
  if (tensor.agreement == Agreement::not_in_actual)
    return {name, shape, "", "", "", "", "", "", verdict};
  const std::string dtype(name_of(tensor.dtype));
  if (!tensor.real || tensor.count == 0) {
    return {name, shape, dtype, "", "", "", "", tensor.real ? "" : "equal", verdict};
  }
  return {name,
          shape,
          dtype,
          short_number(tensor.max_absolute),
          short_number(tensor.max_relative),
          short_number(tensor.max_scaled),
          short_number(tensor.max_ulp),
          short_number(tensor.limit),
          verdict};
}

void print_worst(const TensorComparison& tensor) {
  if (!tensor.reason.empty())
    print(fmt::format("{}: {}\n", printable(tensor.golden), tensor.reason));
  if (!tensor.has_worst) return;
  const std::string place = printable(tensor.golden) + to_string(tensor.worst);
  if (!tensor.real) {
    print(fmt::format("{}: golden {}, actual {}\n", place, tensor.worst_golden_integer,
                      tensor.worst_actual_integer));
    return;
  }
  print(fmt::format("{}: golden {} ({}), actual {} ({})\n", place, decimal(tensor.worst_golden),
                    hexadecimal(tensor.worst_golden), decimal(tensor.worst_actual),
                    hexadecimal(tensor.worst_actual)));
}

void print_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + printable(name);
  print(fmt::format("{}: {}\n", what, list));
}

void print_text(const Comparison& comparison) {
  TextTable table{
      {"tensor", "shape", "dtype", "max abs", "max rel", "/ largest", "ulp", "limit", "verdict"},
      {}};
  for (const TensorComparison& tensor : comparison.tensors) table.rows.push_back(row_of(tensor));
  print(as_text(table));
  bool first = true;
  for (const TensorComparison& tensor : comparison.tensors) {
    if (tensor.reason.empty() && !tensor.has_worst) continue;
    if (first) print("\nworst elements\n");
    first = false;
    print_worst(tensor);
  }
  print_names("\nonly in ACTUAL", comparison.not_in_golden);
  print_names("\ninputs that differ between the files", comparison.inputs_differ);
  print(comparison.agree ? "\nagree\n" : "\ndisagree\n");
}

void run(const Arguments& arguments) {
  const Comparison comparison = compare(open(arguments.golden), open(arguments.actual));
  if (arguments.json) {
    print_json(to_json(comparison));
  } else {
    print_text(comparison);
  }
  if (!comparison.agree) throw numbers_disagree();
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command = app.add_subcommand("compare", "Compare the results in two files");
  command->add_option("golden", arguments->golden, "the file that is right")
      ->required()
      ->type_name("GOLDEN");
  command
      ->add_option("actual", arguments->actual,
                   "the file to judge: its out.* and grad.*, else its peer.*")
      ->required()
      ->type_name("ACTUAL");
  command->add_flag("--json", arguments->json, "the same as JSON");
  command->footer(
      "A tensor agrees when no difference exceeds its limit times the golden tensor's largest "
      "finite value. NaN and\n"
      "infinities must stand in the same places; integers and flags must be equal. Exit code 1 "
      "when one disagrees.\n"
      "Examples:\n"
      "  plumbline compare golden.safetensors kernel.safetensors\n"
      "  plumbline compare golden.safetensors peer_case.safetensors --json");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plumbline
