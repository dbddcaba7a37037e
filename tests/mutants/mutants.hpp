// tests/mutants/mutants.hpp
//
// Mutants: wrong versions of operations, as data. Each is a mistake that somebody made or could make; judging one and
// letting it pass would mean that plumbline cannot see that mistake. docs/mutants.md has the table of who sees what.
// A mutant's result is an evaluation in f32 of a changed problem, a changed result of it, or an execution with worse
// arithmetic than the contract it is judged under; in all else it is a correct kernel.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reference/registry/operation.hpp"

namespace plumbline::mutants {

// Where mutants live: a request as a suite holds it, made in every family that applies to its operation.
struct Setting {
  std::string name;
  std::string request;                              // JSON, without family and seed
  std::function<void(Problem&)> prepare = nullptr;  // what no family arranges
};
const std::vector<Setting>& settings();
const Setting& setting(const std::string& name);

struct Scene {  // what a mutant is a wrong version of
  const Operation& operation;
  const Problem& problem;
  const Result& correct;  // in f32
};
using Change = std::function<void(Problem&, const Scene&)>;
using Spoil = std::function<void(Result&, const Scene&)>;

struct Mutant {
  std::string name, setting;
  std::string models;  // the fault it stands for, in a sentence
  Change change = nullptr;
  Spoil spoil = nullptr;
  std::optional<Contract> arithmetic = std::nullopt;  // executed under it, judged under ieee_f32
};
using Mutants = std::vector<Mutant>;
Mutants of_losses();
Mutants of_loss_rows();
Mutants of_attention();
Mutants of_compressed_attention();
Mutants of_selection();
Mutants of_layers();
Mutants of_basics();
Mutants of_arithmetic();
const Mutants& all_mutants();

}  // namespace plumbline::mutants
