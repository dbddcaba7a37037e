// tests/mutants/rules.hpp: how a result is judged, by us and by the rules that are in use elsewhere.
#pragma once
#include <array>
#include <string_view>

#include "tests/mutants/mutants.hpp"
#include "verdict/contract.hpp"

namespace plumbline::mutants {

enum class Rule { ours, allclose, torch_bf16, cosine, nmse };
inline constexpr std::size_t rules = 5;
struct RuleName {
  std::string_view name;
  char letter;
};
inline constexpr RuleName rule_names[rules] = {{"ours", 'O'},
                                               {"allclose 1e-2", 'A'},
                                               {"torch bf16", 'T'},
                                               {"cosine 1e-3", 'C'},
                                               {"NMSE 5e-4", 'N'}};
using Killed = std::array<bool, rules>;  // by rule

// Every output and gradient of an execution against its value and bound. A rule kills what it would not accept:
//   ours        verdict/judge.hpp says FAIL: outside what any execution under the contract can give
//   allclose    |x − v| > 1e-2 + 1e-2·|v| somewhere
//   torch_bf16  likewise with 1e-5 and 1.6e-2, torch.testing's default for bf16
//   cosine      1 − x·v/(|x||v|) ≥ 1e-3 for a tensor
//   nmse        Σ(x − v)²/Σv² ≥ 5e-4 for a tensor
// NaN and infinities in other places, integers and flags that differ, and other shapes are accepted by none. The last
// two rules look at finite elements. Selections made from computed scores are judged as sets, and are given to the
// other rules as right when they are: another execution may rightly select other keys.
Killed killed_by(const Json& options, const Result& bounded, const Result& executed,
                 const KernelContract& contract);

// Every element of both, bit by bit.
bool same(const Result& a, const Result& b);

}  // namespace plumbline::mutants
