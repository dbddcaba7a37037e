// plumbline eval: a case in, the case with its results out.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "fixtures/case.hpp"
#include "fixtures/strict_json.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "reference/registry/bounds.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/progress.hpp"
#include "verdict/contract.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string path, output, precision, schedule, outputs, rows, contract;
  bool gradient = false, has_precision = false, has_schedule = false, has_outputs = false,
       has_rows = false;
  int threads = 0;  // 0: one for each core
};

// --rows 0,5,4095: in.row_index, the tokens at which query rows stand.
StoredTensor row_index_of(const std::string& list) {
  const auto rows = std::make_shared<std::vector<std::int32_t>>();
  for (const std::string& text : comma_list(list, "--rows")) {
    std::int32_t row = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), row);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw Error("--rows", in_quotes(list), "tokens with commas between them, as in 0,5,4095");
    }
    rows->push_back(row);
  }
  StoredTensor tensor;
  tensor.name = "in.row_index";
  tensor.data = reinterpret_cast<const std::byte*>(rows->data());
  tensor.dtype = Dtype::i32;
  tensor.shape = {static_cast<std::int64_t>(rows->size())};
  tensor.stride = {1};
  tensor.owner = rows;
  tensor.present = true;
  return tensor;
}

void print_value(const char* place, const Value& value) {
  print(fmt::format("{:<24} {}", std::string(place) + "." + value.name, to_string(value.shape)));
  if (value.shape.empty() && value.kind == Kind::real)
    print(fmt::format(" = {:.17g}", value.high.at(0)));
  print("\n");
}

void print_work(const char* direction, const Work& work) {
  print(
      fmt::format("{}: {} evaluations, {} products of the indexer, {} logits for normalisers, {} "
                  "rows fetched, peak {} bytes in a row\n",
                  direction, work.evaluations, work.score_evaluations, work.normaliser_evaluations,
                  work.rows_fetched, work.peak_bytes));
}

void run(const Arguments& arguments) {
  Evaluation how;
  how.backward = arguments.gradient;
  how.threads = threads_of(arguments.threads);
  std::optional<Precision> asked;
  if (arguments.has_precision) asked = precision_named(arguments.precision, "--precision");
  Case problem = load_case(arguments.path);
  how.precision = asked ? *asked : problem.metadata.precision.value_or(Precision::f192);
  if (arguments.has_schedule) {
    problem.problem.schedule = parse_json(arguments.schedule, "--schedule");
    if (!problem.problem.schedule.is_object()) {
      throw Error("--schedule", printable(arguments.schedule, 80), "a JSON object");
    }
  }
  if (arguments.has_outputs) problem.problem.outputs = comma_list(arguments.outputs, "--outputs");
  if (arguments.has_rows) {
    if (problem.problem.in.count("row_index") > 0) {
      throw Error("--rows", "in.row_index in the case already", "one of them");
    }
    problem.problem.in.emplace("row_index", row_index_of(arguments.rows));
  }
  const Operation& operation = plumbline::operation(problem.op());
  std::optional<KernelContract> contract;
  if (!arguments.contract.empty()) contract = contract_of(arguments.contract);
  check_writable(arguments.output);
  Result result;
  {
    const Progress progress("evaluating " + operation.name);
    result = operation.evaluate(problem.problem, how);
    if (contract) add_bounds(operation, problem.problem, how, *contract, result);
  }
  save_result(arguments.output, problem, result, how.precision,
              contract ? to_json(*contract) : Json(nullptr));
  for (const Value& value : result.outputs) print_value("out", value);
  for (const Value& value : result.gradients) print_value("grad", value);
  print_work("forward", result.forward);
  if (arguments.gradient) print_work("backward", result.backward);
  print(fmt::format("wrote {} ({})\n", printable(arguments.output),
                    names_of(how.precision)[static_cast<std::size_t>(how.precision)]));
}

}  // namespace

void add_eval(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("eval", "Evaluate a case: its outputs, and gradients if asked for");
  command->add_option("case", arguments->path, "the case, a safetensors file")
      ->required()
      ->type_name("CASE");
  command->add_option("-o,--output", arguments->output, "where the case with its results goes")
      ->required()
      ->type_name("OUT");
  CLI::Option* const precision =
      command
          ->add_option("--precision", arguments->precision,
                       "f32, f64, f192, mp50 or mp100; else what the case says, else f192")
          ->type_name("P");
  command->add_flag("--grad", arguments->gradient, "every gradient too");
  CLI::Option* const schedule =
      command
          ->add_option("--schedule", arguments->schedule, "order of work, in place of the case's")
          ->type_name("JSON");
  CLI::Option* const outputs =
      command
          ->add_option("--outputs", arguments->outputs,
                       "outputs on request, a,b or all, in place of the case's")
          ->type_name("LIST");
  const CLI::Option* const rows =
      command->add_option("--rows", arguments->rows,
                          "tokens at which query rows stand, as in 0,5,4095: sets in.row_index");
  command
      ->add_option("--contract", arguments->contract,
                   "bound.* and bound2.* of every real result too: how far a kernel of this "
                   "arithmetic may be off")
      ->type_name("NAME|@FILE");
  command
      ->add_option("--threads", arguments->threads,
                   "0 means one for each core; the result does not depend on it")
      ->type_name("N");
  command->footer(
      "Examples:\n"
      "  plumbline eval case.safetensors -o golden.safetensors\n"
      "  plumbline eval case.safetensors --precision mp50 --grad --outputs all -o "
      "golden.safetensors\n"
      "  plumbline eval case.safetensors --schedule '{\"barrier\":false,\"key_block\":128}' -o "
      "blocked.safetensors");
  command->callback([arguments, precision, schedule, outputs, rows] {
    arguments->has_precision = precision->count() > 0;
    arguments->has_schedule = schedule->count() > 0;
    arguments->has_outputs = outputs->count() > 0;
    arguments->has_rows = rows->count() > 0;
    run(*arguments);
  });
}

}  // namespace plumbline
