// tools/commands.hpp
//
// The commands of the program. Each adds itself with its options, examples and callback; main.cpp lists them.
// A callback prints its answer on stdout. Wrong input: it throws Error (exit code 2, one line on stderr). Numbers
// that disagree: it prints them and throws `numbers_disagree()` (exit code 1, nothing more is printed).
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace plumbline {

void add_ops(CLI::App& app);
void add_eval(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app);
void add_contract(CLI::App& app);
void add_gradcheck(CLI::App& app);
void add_info(CLI::App& app);
void add_mask(CLI::App& app);
void add_generate(CLI::App& app);
void add_fixtures(CLI::App& app);
void add_verify(CLI::App& app);

inline CLI::RuntimeError numbers_disagree() { return CLI::RuntimeError(1); }

void print(const std::string& text);          // to stdout; Error when it cannot be written
void print_json(const nlohmann::json& json);  // two blanks of indent, one value

}  // namespace plumbline
