#include <algorithm>
#include <sstream>

#include "tests/mutants/world.hpp"

namespace plumbline::mutants {
namespace {

constexpr std::string_view start = R"(# Mutants

A mutant is a wrong version of an operation: a mistake that somebody made or could make, planted on purpose. If
judging it lets it pass, plumbline cannot see that mistake, so `tests/mutants_test.cpp` fails when one survives. The
list is data, in `tests/mutants/`; this page is generated from a run:

    PLUMBLINE_MUTANT_TABLE=docs/mutants.md build/tests/mutants_test

Every mutant is executed in f32 on cases of every [input family](families.md) that applies to its operation, small ones
whose sizes differ from each other, and judged by

| letter | rule | kills |
|---|---|---|
| O | ours | an element outside the [bound](bounds.md) of its value under contract `ieee_f32`: verdict FAIL of [check](check.md) |
| A | allclose 1e-2 | \|x − v\| > 1e-2 + 1e-2·\|v\| somewhere |
| T | torch bf16 | \|x − v\| > 1e-5 + 1.6e-2·\|v\| somewhere, the default of `torch.testing.assert_close` for bf16 |
| C | cosine 1e-3 | 1 − x·v/(\|x\|\|v\|) ≥ 1e-3 for an output or gradient |
| N | NMSE 5e-4 | Σ(x − v)²/Σv² ≥ 5e-4 for an output or gradient |

Other rules than ours get their values from us, exact ones, and every output and gradient to look at; a test in the
field has fewer. A rule that fails the correct execution of the same case as well has not killed: it tells nothing
there. A NaN or infinity in the wrong place, a wrong integer or flag kills under every rule.
)";

constexpr std::string_view legend = R"(
## Mutant by mutant

Cells say in how many families a rule kills, of those in which the mutant gives another result than a correct
execution at all. A mistake in documents shows only where there are documents.
)";

constexpr std::string_view by_family = R"(
## Family by family

Letters are the rules that kill; a dot is a rule that lets the mutant pass. `=`: the mutant's result is that of a
correct execution, bit for bit. Empty: the family has nothing to arrange there, or the mutant cannot be formed.
)";

bool kills(const Cell& cell, std::size_t rule) {
  return cell.state == Cell::State::differs && cell.killed[rule];
}
bool differs(const Cell& cell) { return cell.state == Cell::State::differs; }

template <class F> std::ptrdiff_t count(const std::vector<Cell>& cells, F f) {
  return std::count_if(cells.begin(), cells.end(), f);
}

// f(mutant, its cells) for each mutant of the setting.
template <class F> void of_setting(const Census& census, const std::string& name, F f) {
  for (std::size_t i = 0; i < census.cells.size(); ++i) {
    const Mutant& mutant = all_mutants()[i];
    if (mutant.setting == name) f(mutant, census.cells[i]);
  }
}
bool has_mutants(const Setting& setting) {
  return std::any_of(all_mutants().begin(), all_mutants().end(),
                     [&](const Mutant& mutant) { return mutant.setting == setting.name; });
}

void write_sums(std::ostream& page, const Census& census) {
  page << "\n"
       << census.cells.size() << " mutants, " << census.correct
       << " correct executions in f32, and with bf16 intermediates and outputs under contracts "
          "that say so.\n\n"
       << "| rule | kills, in some family | kills in every family that shows the mutant | correct "
          "executions in f32 "
          "that it fails |\n|---|---|---|---|\n";
  for (std::size_t rule = 0; rule < rules; ++rule) {
    std::size_t some = 0, every = 0;
    for (const std::vector<Cell>& cells : census.cells) {
      const auto killed = count(cells, [&](const Cell& c) { return kills(c, rule); });
      some += killed > 0 ? 1 : 0;
      every += killed > 0 && killed == count(cells, differs) ? 1 : 0;
    }
    page << "| " << rule_names[rule].name << " | " << some << " | " << every << " | "
         << census.failed[rule] << " |\n";
  }
}

void write_mutants(std::ostream& page, const Census& census, const Setting& setting) {
  page << "\n### " << setting.name << "\n\n| mutant | what it models |";
  for (const RuleName& rule : rule_names) page << " " << rule.name << " |";
  page << "\n|---|---|---|---|---|---|---|\n";
  of_setting(census, setting.name, [&](const Mutant& mutant, const std::vector<Cell>& cells) {
    page << "| " << mutant.name << " | " << mutant.models << " |";
    for (std::size_t rule = 0; rule < rules; ++rule)
      page << " " << count(cells, [&](const Cell& c) { return kills(c, rule); }) << "/"
           << count(cells, differs) << " |";
    page << "\n";
  });
}

void write_families(std::ostream& page, const Census& census, const Setting& setting) {
  page << "\n### " << setting.name << " by family\n\n| mutant |";
  for (const std::string& family : default_families()) page << " " << family << " |";
  page << "\n|---|";
  for (std::size_t i = 0; i < default_families().size(); ++i) page << "---|";
  page << "\n";
  of_setting(census, setting.name, [&](const Mutant& mutant, const std::vector<Cell>& cells) {
    page << "| " << mutant.name << " |";
    for (const Cell& cell : cells) {
      page << " ";
      if (cell.state == Cell::State::same) page << "=";
      for (std::size_t rule = 0; differs(cell) && rule < rules; ++rule) {
        if (cell.killed[rule]) {
          page << rule_names[rule].letter;
        } else {
          page << "·";
        }
      }
      page << " |";
    }
    page << "\n";
  });
}

}  // namespace

std::string page_of(const Census& census) {
  std::ostringstream page;
  page << start;
  write_sums(page, census);
  page << legend;
  for (const Setting& setting : settings())
    if (has_mutants(setting)) write_mutants(page, census, setting);
  page << by_family;
  for (const Setting& setting : settings())
    if (has_mutants(setting)) write_families(page, census, setting);
  return page.str();
}

}  // namespace plumbline::mutants
