// The plumbline program: parse, call, print. Exit codes: 0 fine, 1 the numbers disagree, 2 input or usage is wrong,
// which is said in one line on stderr: what is wrong, what was found, what was expected.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "tools/commands.hpp"

#ifndef PLUMBLINE_VERSION
#define PLUMBLINE_VERSION "unversioned"
#endif

namespace plumbline {

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw Error("standard output", std::strerror(errno), "a place where text can be written");
  }
}

void print_json(const nlohmann::json& json) {
  print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

namespace {

constexpr std::size_t longest_line = 2000;

int complain(const std::string& line) {
  fmt::print(stderr, "plumbline: {}\n", printable(line, longest_line));
  return 2;
}

std::string names_of_commands(const CLI::App& app) {
  std::string list;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    list += (list.empty() ? "" : ", ") + command->get_name();
  }
  return list;
}

int complain_about_usage(const CLI::App& app, const CLI::ParseError& error, const char* first) {
  const auto commands = app.get_subcommands();
  if (commands.empty()) {
    const std::string found = first == nullptr ? "no command" : in_quotes(first);
    return complain(
        Error("command line", found, "one of " + names_of_commands(app) + "; see plumbline --help")
            .what());
  }
  const std::string name = commands.front()->get_name();
  return complain(
      Error("command line of " + name, error.what(), "what plumbline " + name + " --help says")
          .what());
}

int run(int argc, char** argv) {
  CLI::App app("The reference that attention kernels are checked against.", "plumbline");
  app.set_version_flag("--version", "plumbline " PLUMBLINE_VERSION);
  app.footer(
      "Examples:\n"
      "  plumbline ops csa_indexer_loss\n"
      "  plumbline eval case.safetensors --grad -o golden.safetensors\n"
      "  plumbline check case.safetensors kernel.safetensors --contract bf16_f32acc\n"
      "  plumbline compare golden.safetensors kernel.safetensors\n"
      "Exit codes: 0 fine, 1 the numbers disagree, 2 input or usage is wrong.");
  app.require_subcommand(1);
  add_ops(app);
  add_eval(app);
  add_check(app);
  add_contract(app);
  add_compare(app);
  add_gradcheck(app);
  add_info(app);
  add_mask(app);
  add_generate(app);
  add_fixtures(app);
  add_verify(app);
  int status = 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    status = error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      return complain_about_usage(app, error, argc > 1 ? argv[1] : nullptr);
    status = app.exit(error);  // --help, --version
    if (error.get_name() != "CallForVersion") print("\n");
  }
  // A full disk behind stdout shows only when the last block is written.
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout) {
    throw Error("standard output", std::strerror(errno), "a place where text can be written");
  }
  return status;
}

}  // namespace
}  // namespace plumbline

int main(int argc, char** argv) {
  try {
    return plumbline::run(argc, argv);
  } catch (const plumbline::Error& error) {
    return plumbline::complain(error.what());
  } catch (const std::bad_alloc&) {
    return plumbline::complain(
        plumbline::Error("memory", "not enough", "enough for this case").what());
  } catch (const std::exception& error) {
    return plumbline::complain(
        plumbline::Error("plumbline itself", error.what(), "no failure here").what());
  }
}
