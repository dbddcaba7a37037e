// verdict/judge.hpp
//
// One tensor of a kernel against the value, the bound and the gauge of every element; docs/check.md.
// An element's bound B is that of its number, and one rounding into the output format on top:
//     B = bound + u(|value| + bound) + η,  in both tiers
// with the format the contract writes, or the tensor's own where that is coarser.
// Guarantees: no tolerance; PASS says that every element lies within the statistical tier, FAIL proves that no
// execution the contract allows gives one of them. A bound that exceeds the scale of its element proves nothing, and
// the element is UNPROVABLE, not passed: the scale is the element's gauge or the range of its row, never its value.
// NaN and infinities must stand in the same places, but where rounding into the output format may overflow.
// Integers and flags must be equal; selections are judged as sets, see judge_selection.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/registry/operation.hpp"
#include "verdict/contract.hpp"
#include "verdict/elements.hpp"

namespace plumbline {

enum class Verdict { pass, suspect, unprovable, fail };  // from best to worst
inline std::span<const std::string_view> names_of(Verdict) {
  static constexpr std::string_view names[] = {"PASS", "SUSPECT", "UNPROVABLE", "FAIL"};
  return names;
}
inline std::string_view name_of(Verdict verdict) {
  return names_of(verdict)[static_cast<std::size_t>(verdict)];
}

struct JudgedElement {
  std::int64_t position = 0;
  Verdict verdict = Verdict::pass;
  Pair wanted, actual;
  std::int64_t wanted_integer = 0, actual_integer = 0;  // of integers and flags
  long double off = 0, bound = 0, bound2 = 0;           // |actual − wanted|, tier 1, tier 2
  long double margin = 0, margin2 = 0;                  // off / bound
  long double ulp = 0;                                  // of the output format at |wanted|
  // The largest part of the bound: "storage", "arithmetic", or what terms.hpp finds of that.
  std::string dominating;
  std::string why;  // what else is wrong, as "NaN, where a number was expected"
};

struct TensorVerdict {
  std::string name, actual;       // out.output, peer.out.output
  std::vector<std::string> axes;  // letters
  Shape shape;
  Dtype dtype = Dtype::f64;  // of the actual
  Kind kind = Kind::real;
  bool selection = false;
  bool missing = false;  // in the actual file; then nothing below has a meaning
  Verdict verdict = Verdict::pass;
  std::string reason;  // one clause, where it is not a number
  std::string basis;   // what it was judged from, where that is not the case alone
  std::int64_t count = 0, counts[4] = {0, 0, 0, 0};  // elements (rows of a selection) by verdict
  long double margin = 0, margin2 = 0;               // the largest, in both tiers
  std::vector<JudgedElement> worst;                  // the worst first
  std::vector<float> margins;                        // of each element (row), in tier 1
};

// The coarser of two formats in every respect: what storing a number may cost.
struct Storage {
  double unit = 0, least = 0, overflow = std::numeric_limits<double>::infinity();
  double faint = 0;          // below it intermediates in f32 (f64) may lose all digits to underflow
  double largest = 0;        // what a converter that saturates returns; 0: none does
  Dtype dtype = Dtype::f64;  // whose ulp is told
};
Storage storage_of(const KernelContract& contract, Dtype actual);

// The bounds of one stored element.
struct StoredBound {
  long double tier1 = 0, tier2 = 0;
};
StoredBound stored_bound(const Value& value, std::size_t i, const Storage& storage);

// Error-free for shapes and kinds that do not fit: that is a FAIL with a reason.
TensorVerdict judge(const Value& value, const StoredTensor& actual, const KernelContract& contract,
                    std::size_t worst = 5);

// The scores that a selection goes by, row after row.
struct SelectionScores {
  std::int64_t rows = 0, keys = 0;
  std::vector<Pair> score;
  std::vector<double> bound, bound2;
  std::vector<std::uint8_t> visible;
};
// Scores of the values of an output: hidden keys are −inf.
SelectionScores scores_of(const Value& scores);

struct SelectionQuestion {
  std::int64_t k = 0;
  bool threshold = false;  // every score of at least the k-th, not exactly k
};
// Indices or flags of selected keys. A row is right when its keys are distinct and visible, min(k, visible) of them,
// and no key left out is better than a selected one by more than both bounds: exactly the sets that some allowed
// execution would select. Where bounds are 0, a declared tie rule must hold.
TensorVerdict judge_selection(const Value& value, const SelectionScores& scores,
                              const SelectionQuestion& question, const StoredTensor& actual,
                              const KernelContract& contract, std::size_t worst = 5);

Verdict worse(Verdict a, Verdict b);
// Puts an element among the worst.
void note(TensorVerdict& tensor, JudgedElement element, std::size_t worst);

}  // namespace plumbline
