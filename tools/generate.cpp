// plumbline generate: a case with its golden results, or a whole suite of them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "fixtures/families.hpp"
#include "fixtures/generate.hpp"
#include "fixtures/manifest.hpp"
#include "fixtures/strict_json.hpp"
#include "fixtures/suite.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/progress.hpp"

#ifndef PLUMBLINE_VERSION
#define PLUMBLINE_VERSION "unversioned"
#endif

namespace plumbline {
namespace {

struct Arguments {
  std::string op, dims, options, schedule, outputs, with, without, suite, output, contract;
  std::string family, precision, dtype, seed;
  bool gradient = false, list = false;
  int threads = 0;
};

template <class Number>
Number number_in(const std::string& text, const std::string& where, const char* expected) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || last != end) throw Error(where, in_quotes(text), expected);
  return number;
}

Json dims_in(const std::string& text) {
  Json dims = Json::object();
  for (const std::string& part : comma_list(text, "--dims")) {
    const std::size_t equals = part.find('=');
    const std::string letter = part.substr(0, equals);
    if (equals == std::string::npos || letter.empty())
      throw Error("--dims", in_quotes(part), "LETTER=SIZE, as in B=2,T=24");
    if (dims.contains(letter))
      throw Error("--dims", in_quotes(letter) + " twice", "each letter once");
    dims[letter] = number_in<std::int64_t>(part.substr(equals + 1), "--dims " + letter,
                                           "a size, an integer >= 0");
  }
  return dims;
}

Json object_in(const std::string& text, const std::string& where) {
  const bool file = text.starts_with('@');
  const Json json = parse_json(file ? read_text(text.substr(1)) : text,
                               file ? where + " " + printable(text) : where);
  if (!json.is_object()) throw Error(where, printable(text, 80), "a JSON object");
  return json;
}

// A preset by its name; a file as what it declares.
Json contract_json(const std::string& text) {
  const KernelContract contract = contract_of(text);
  return text.starts_with('@') ? to_json(contract) : Json(text);
}

void list_families() {
  for (const Family& family : families())
    print(fmt::format("{:<13} {}\n", family.name, family.doc));
}

void generate_one(const Arguments& arguments) {
  if (arguments.output.empty())
    throw Error("command line of generate", "no -o", "-o FILE, where the case goes");
  Json json = {{"op", arguments.op},
               {"family", arguments.family},
               {"grad", arguments.gradient},
               {"dims", dims_in(arguments.dims)},
               {"precision", arguments.precision},
               {"dtype", arguments.dtype}};
  json["seed"] =
      number_in<std::uint64_t>(arguments.seed, "--seed", "an integer from 0 to 2^64 - 1");
  if (!arguments.options.empty()) json["options"] = object_in(arguments.options, "--options");
  if (!arguments.schedule.empty()) json["schedule"] = object_in(arguments.schedule, "--schedule");
  json["outputs"] = comma_list(arguments.outputs, "--outputs");
  json["with"] = comma_list(arguments.with, "--with");
  json["without"] = comma_list(arguments.without, "--without");
  if (!arguments.contract.empty()) json["contract"] = contract_json(arguments.contract);
  const GenerateRequest request = generate_request(json, "generate");
  check_writable(arguments.output);
  GeneratedCase made;
  {
    const Progress progress("generating " + request.op);
    made = generate(request, threads_of(arguments.threads), contract_in);
    write(made, arguments.output);
  }
  std::sort(made.tensors.begin(), made.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const GeneratedTensor& tensor : made.tensors) {
    if (!tensor.name.ends_with(".lo"))
      print(fmt::format("{:<24} {:<5} {}\n", tensor.name, name_of(tensor.dtype),
                        to_string(tensor.shape)));
  }
  print(fmt::format("wrote {}\n", printable(arguments.output)));
}

void generate_suite(const Arguments& arguments) {
  if (arguments.output.empty())
    throw Error("command line of generate", "no -o", "-o DIR, where the suite goes");
  const std::vector<SuiteEntry> entries = read_suite(arguments.suite);
  SuiteRun run;
  run.tool = PLUMBLINE_VERSION;
  run.threads = threads_of(arguments.threads);
  run.read_contract = contract_in;
  std::unique_ptr<Progress> progress;
  std::size_t kept_files = 0;
  run.report = [&](const SuiteEntry& entry, bool kept, bool done) {
    progress.reset();
    if (!done) progress = std::make_unique<Progress>("generating " + entry.id);
    if (done && kept) ++kept_files;
    if (done) print(fmt::format("{} {}\n", kept ? "kept " : "wrote", entry.id));
  };
  write_suite(entries, arguments.output, run);
  print(fmt::format("{} fixtures and {} in {}{}\n", entries.size(), manifest_name,
                    printable(arguments.output),
                    kept_files > 0 ? fmt::format(", {} of them from before", kept_files) : ""));
}

void run(const Arguments& arguments) {
  if (arguments.list) return list_families();
  if (!arguments.suite.empty() && !arguments.op.empty()) {
    throw Error("command line of generate", "OP beside --suite",
                "one of them: a suite names its operations");
  }
  if (!arguments.suite.empty()) return generate_suite(arguments);
  if (arguments.op.empty())
    throw Error("command line of generate", "neither OP nor --suite", "one of them");
  generate_one(arguments);
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  arguments->family = "gaussian";
  arguments->precision = "f192";
  arguments->dtype = "BF16";
  arguments->seed = "0";
  CLI::App* const command =
      app.add_subcommand("generate", "Make a case with its golden results, or a suite of them");
  command->add_option("op", arguments->op, "the operation")->type_name("OP");
  CLI::Option* const suite =
      command
          ->add_option("--suite", arguments->suite,
                       "a file that describes many cases; -o is a folder then")
          ->type_name("FILE");
  command->add_option("-o,--output", arguments->output, "where the case, or the suite, goes")
      ->type_name("OUT");
  const std::vector<CLI::Option*> of_one = {
      command
          ->add_option("--dims", arguments->dims,
                       "sizes by letter, B=2,T=24; the rest is derived or chosen")
          ->type_name("LIST"),
      command->add_option("--options", arguments->options, "options of the operation")
          ->type_name("JSON|@FILE"),
      command->add_option("--schedule", arguments->schedule, "order of work")
          ->type_name("JSON|@FILE"),
      command
          ->add_option("--family", arguments->family,
                       "what stands in the inputs; A+B combines, see --families")
          ->type_name("NAME"),
      command->add_option("--seed", arguments->seed, "another seed, other inputs; 0 to 2^64 - 1")
          ->type_name("N"),
      command->add_option("--dtype", arguments->dtype, "of real inputs: BF16, F16, F32 or F64")
          ->type_name("D"),
      command
          ->add_option("--precision", arguments->precision,
                       "of the results: f32, f64, f192, mp50 or mp100")
          ->type_name("P"),
      command->add_flag("--grad", arguments->gradient,
                        "every gradient too, with cotangents where there is no loss"),
      command
          ->add_option("--contract", arguments->contract,
                       "bounds of this arithmetic too, as bound.* and bound2.*")
          ->type_name("NAME|@FILE"),
      command->add_option("--outputs", arguments->outputs, "outputs on request, a,b or all")
          ->type_name("LIST"),
      command->add_option("--with", arguments->with, "optional tensors to write too")
          ->type_name("LIST"),
      command->add_option("--without", arguments->without, "optional tensors not to write")
          ->type_name("LIST")};
  for (CLI::Option* const option : of_one) option->excludes(suite);
  command
      ->add_option("--threads", arguments->threads,
                   "0 means one for each core; the bytes do not depend on it")
      ->type_name("N");
  command->add_flag("--families", arguments->list, "list the families");
  command->footer(
      "Examples:\n"
      "  plumbline generate csa_indexer_loss --dims T=24,m=4 --family documents --grad -o "
      "case.safetensors\n"
      "  plumbline generate topk --dims T=9,S=40,k=8 --family near_equal --dtype F32 -o "
      "topk.safetensors\n"
      "  plumbline generate --suite fixtures/suites/topk.json -o goldens");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace plumbline
