// plumbline mask: who sees whom in a case, as text or as a picture.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "fixtures/case.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/mask_picture.hpp"
#include "tools/text_table.hpp"

namespace plumbline {
namespace {

struct Arguments {
  std::string path, output, rows, tokens;
  std::int64_t batch = 0;
  bool svg = false, has_rows = false, has_tokens = false;
};

std::vector<std::int64_t> numbers_of(const std::string& list, const std::string& option) {
  std::vector<std::int64_t> numbers;
  for (const std::string& text : comma_list(list, option)) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      throw Error(option, in_quotes(list), "numbers with commas between them");
    numbers.push_back(number);
  }
  return numbers;
}

std::string names_with_masks() {
  std::string names;
  for (const Operation* operation : operations()) {
    if (operation->has_mask_view) names += (names.empty() ? "" : ", ") + operation->name;
  }
  return names;
}

void run(const Arguments& arguments) {
  check_report_paths({{"--output", arguments.output}}, {arguments.path});
  const Case problem = load_case(arguments.path);
  const Operation& operation = plumbline::operation(problem.op());
  const auto view = operation.mask_view(problem.problem);
  if (!view) {
    throw Error("op", in_quotes(operation.name), "one whose rows see keys: " + names_with_masks());
  }
  PictureRequest request;
  request.batch = arguments.batch;
  if (arguments.has_rows) {
    request.rows = numbers_of(arguments.rows, "--rows");
    if (request.rows.empty()) throw Error("--rows", "none", "rows, as in 0,5,11");
  }
  if (arguments.has_tokens) {
    const std::vector<std::int64_t> range = numbers_of(arguments.tokens, "--tokens");
    if (range.size() != 2)
      throw Error("--tokens", in_quotes(arguments.tokens), "first,last as in 0,63");
    request.has_tokens = true;
    request.first_token = range[0];
    request.last_token = range[1];
  }
  Picture picture = picture_of(*view, request);
  picture.title = operation.name;
  if (view->visibility.batch() > 1) picture.title += fmt::format(", batch {}", request.batch);
  constexpr std::size_t longest = 400, line = 90;
  std::string options = wrapped(printable(problem.problem.options.dump(), longest), 0, line);
  for (std::size_t end = 0; (end = options.find('\n')) != std::string::npos;) {
    picture.subtitle.push_back(options.substr(0, end));
    options.erase(0, end + 1);
  }
  const std::string text = arguments.svg ? as_svg(picture) : as_text(picture);
  arguments.output.empty() ? print(text) : write_report(arguments.output, text);
}

}  // namespace

void add_mask(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const command =
      app.add_subcommand("mask", "Draw who sees whom in a case: rows against tokens and blocks");
  command->add_option("case", arguments->path, "the case, a safetensors file")
      ->required()
      ->type_name("CASE");
  command->add_option("--batch", arguments->batch, "which batch (0)")->type_name("B");
  const CLI::Option* const rows =
      command->add_option("--rows,--row", arguments->rows, "these rows alone, as in 0,5,11")
          ->type_name("LIST");
  const CLI::Option* const tokens = command
                                        ->add_option("--tokens", arguments->tokens,
                                                     "first,last of the tokens; blocks inside them")
                                        ->type_name("RANGE");
  command->add_flag("--svg", arguments->svg, "a picture instead of text");
  command->add_option("-o,--output", arguments->output, "where it goes, else standard output")
      ->type_name("FILE");
  command->footer(fmt::format(
      "Operations over blocks show two panels: the tokens with the window, and the blocks. A "
      "selection is shown where\n"
      "the case names one. A picture holds {} rows and {} tokens at most.\n"
      "Examples:\n"
      "  plumbline mask case.safetensors\n"
      "  plumbline mask case.safetensors --svg -o mask.svg\n"
      "  plumbline mask long.safetensors --rows 0,100,4095 --tokens 4032,4095",
      most_rows, most_keys));
  command->callback([arguments, rows, tokens] {
    arguments->has_rows = rows->count() > 0;
    arguments->has_tokens = tokens->count() > 0;
    run(*arguments);
  });
}

}  // namespace plumbline
