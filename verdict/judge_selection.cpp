// Selections as sets. A score stands for the interval [score − β, score + β]; a row is right when some scores in these
// intervals would have selected it.
#include <algorithm>
#include <cmath>

#include "verdict/judge.hpp"

namespace plumbline {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

// NaN is below every number and −inf.
struct Level {
  bool number = false;
  long double value = 0;
};
bool less(const Level& a, const Level& b) {
  if (a.number != b.number) return b.number;
  return a.number && a.value < b.value;
}

class Row {
 public:
  Row(const SelectionScores& scores, const SelectionQuestion& question, const SelectionRule& rule,
      std::int64_t row)
      : scores_(scores), question_(question), rule_(rule), first_(row * scores.keys) {}

  // The keys of a row, in its order; −1 are left out. `ordered`: as indices, not as a set of flags.
  JudgedElement judge(const std::vector<std::int64_t>& keys, bool ordered) const {
    JudgedElement e;
    const auto wrong = [&](const std::string& why) {
      e.verdict = Verdict::fail;
      e.margin = e.margin2 = infinity;
      e.why = why;
      return e;
    };
    std::vector<std::uint8_t> chosen(static_cast<std::size_t>(scores_.keys), 0);
    for (const std::int64_t key : keys) {
      if (key < 0 || key >= scores_.keys)
        return wrong("index " + std::to_string(key) + ", outside -1 to " +
                     std::to_string(scores_.keys - 1));
      if (chosen[static_cast<std::size_t>(key)] != 0)
        return wrong("key " + std::to_string(key) + " twice");
      if (scores_.visible[at(key)] == 0)
        return wrong("key " + std::to_string(key) + ", which is hidden");
      chosen[static_cast<std::size_t>(key)] = 1;
    }
    const std::int64_t visible = std::count(scores_.visible.begin() + first_,
                                            scores_.visible.begin() + first_ + scores_.keys, 1);
    const std::int64_t wanted = std::min(question_.k, visible),
                       found = static_cast<std::int64_t>(keys.size());
    const bool more = question_.threshold && !ordered && found > wanted;
    if (found != wanted && !more) {
      return wrong(std::to_string(found) + " keys, expected " + std::to_string(wanted));
    }
    for (const bool second : {false, true}) {
      const long double margin = inversion(chosen, second, e);
      (second ? e.margin2 : e.margin) = margin;
    }
    if (more) need_each(keys, e);
    if (ordered && rule_.order == SelectionRule::Order::best_first) need_order(keys, e);
    if (e.margin > 1) {
      e.verdict = Verdict::fail;
    } else if (unknown_) {
      e.verdict = Verdict::unprovable;
    } else if (e.margin2 > 1) {
      e.verdict = Verdict::suspect;
    }
    if (e.verdict == Verdict::pass || e.verdict == Verdict::suspect)
      check_ties(chosen, keys, ordered, e);
    return e;
  }

 private:
  std::size_t at(std::int64_t key) const { return static_cast<std::size_t>(first_ + key); }
  double bound(std::int64_t key, bool second) const {
    const auto& list = second ? scores_.bound2 : scores_.bound;
    return list.empty() ? 0 : list[at(key)];
  }
  Level level(std::int64_t key) const {
    const Pair score = scores_.score[at(key)];
    if (std::isnan(score.high)) return {};
    return {true, static_cast<long double>(score.high) + static_cast<long double>(score.low)};
  }
  Level moved(std::int64_t key, long double by) const {
    Level score = level(key);
    if (score.number && std::isfinite(static_cast<double>(score.value))) score.value += by;
    return score;
  }
  // How far key `in` lies below key `out`, in units of both bounds; 0 where it does not.
  long double ratio(std::int64_t in, std::int64_t out, bool second) const {
    const Level low = level(in), high = level(out);
    if (!less(low, high)) return 0;
    if (!low.number || !std::isfinite(static_cast<double>(low.value)) ||
        !std::isfinite(static_cast<double>(high.value))) {
      return infinity;
    }
    const long double both = static_cast<long double>(bound(in, second)) + bound(out, second);
    return both == 0                                  ? infinity
           : std::isfinite(static_cast<double>(both)) ? (high.value - low.value) / both
                                                      : 0;
  }

  long double inversion(const std::vector<std::uint8_t>& chosen, bool second,
                        JudgedElement& e) const {
    std::int64_t least = -1, most = -1;
    for (std::int64_t key = 0; key < scores_.keys; ++key) {
      if (scores_.visible[at(key)] == 0) continue;
      const long double beta = bound(key, second);
      if (!std::isfinite(static_cast<double>(beta))) unknown_ = true;
      if (chosen[static_cast<std::size_t>(key)] != 0) {
        if (least < 0 || less(moved(key, beta), moved(least, bound(least, second)))) least = key;
      } else if (most < 0 || less(moved(most, -bound(most, second)), moved(key, -beta))) {
        most = key;
      }
    }
    if (least < 0 || most < 0) return 0;
    const long double margin = ratio(least, most, second);
    if (margin > 1) {
      e.why = "key " + std::to_string(least) + " instead of key " + std::to_string(most);
      e.wanted = scores_.score[at(most)];
      e.actual = scores_.score[at(least)];
      e.off = difference(e.wanted, e.actual);
      e.bound = static_cast<long double>(bound(least, false)) + bound(most, false);
      e.bound2 = static_cast<long double>(bound(least, true)) + bound(most, true);
    }
    return margin;
  }
  // Under a threshold a key beyond the k-th must be able to equal it.
  void need_each(const std::vector<std::int64_t>& keys, JudgedElement& e) const {
    std::vector<std::int64_t> sorted = keys;
    const auto kth = sorted.begin() + (question_.k - 1);
    if (question_.k < 1) {
      e.margin = e.margin2 = infinity;
      e.why = "keys beyond none";
      return;
    }
    std::nth_element(sorted.begin(), kth, sorted.end(), [&](std::int64_t a, std::int64_t b) {
      return less(moved(b, -bound(b, false)), moved(a, -bound(a, false)));
    });
    for (const std::int64_t key : keys) {
      const long double margin = ratio(key, *kth, false);
      if (margin > std::max<long double>(1, e.margin))
        e.why = "key " + std::to_string(key) + ", which is below the threshold";
      e.margin = std::max(e.margin, margin);
      e.margin2 = std::max(e.margin2, ratio(key, *kth, true));
    }
  }
  void need_order(const std::vector<std::int64_t>& keys, JudgedElement& e) const {
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const long double margin = ratio(keys[i - 1], keys[i], false);
      if (margin > std::max<long double>(1, e.margin)) {
        e.why = "key " + std::to_string(keys[i - 1]) + " before key " + std::to_string(keys[i]) +
                ", which is better";
      }
      e.margin = std::max(e.margin, margin);
      e.margin2 = std::max(e.margin2, ratio(keys[i - 1], keys[i], true));
    }
  }
  bool equal(std::int64_t a, std::int64_t b) const {
    return bound(a, false) == 0 && bound(b, false) == 0 && !less(level(a), level(b)) &&
           !less(level(b), level(a));
  }
  // Whether a should stand before b among equals.
  bool first(std::int64_t a, std::int64_t b) const {
    return rule_.tie == SelectionRule::Tie::lowest_index ? a < b : a > b;
  }
  void check_ties(const std::vector<std::uint8_t>& chosen, const std::vector<std::int64_t>& keys,
                  bool ordered, JudgedElement& e) const {
    const auto wrong = [&](std::int64_t taken, std::int64_t left, const char* what) {
      e.verdict = Verdict::fail;
      e.margin = e.margin2 = infinity;
      e.why = "key " + std::to_string(taken) + what + std::to_string(left) +
              ", which has the same score: the tie rule";
    };
    if (question_.threshold && !ordered) {  // equals of a selected key are selected
      for (const std::int64_t taken : keys) {
        for (std::int64_t key = 0; key < scores_.keys; ++key) {
          if (scores_.visible[at(key)] != 0 && chosen[static_cast<std::size_t>(key)] == 0 &&
              equal(taken, key))
            return wrong(taken, key, " without key ");
        }
      }
      return;
    }
    if (rule_.tie == SelectionRule::Tie::any) return;
    for (const std::int64_t taken : keys) {
      for (std::int64_t key = 0; key < scores_.keys; ++key) {
        if (scores_.visible[at(key)] != 0 && chosen[static_cast<std::size_t>(key)] == 0 &&
            equal(taken, key) && first(key, taken))
          return wrong(taken, key, " instead of key ");
      }
    }
    if (!ordered || rule_.order != SelectionRule::Order::best_first) return;
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (equal(keys[i - 1], keys[i]) && first(keys[i], keys[i - 1]))
        return wrong(keys[i - 1], keys[i], " before key ");
    }
  }

  const SelectionScores& scores_;
  const SelectionQuestion& question_;
  const SelectionRule& rule_;
  std::int64_t first_;
  mutable bool unknown_ = false;
};

}  // namespace

SelectionScores scores_of(const Value& value) {
  SelectionScores scores;
  scores.keys = value.shape.empty() ? 0 : value.shape.back();
  scores.rows = 1;
  for (std::size_t axis = 0; axis + 1 < value.shape.size(); ++axis)
    scores.rows *= value.shape[axis];
  scores.bound = value.bound, scores.bound2 = value.bound2;
  for (std::size_t i = 0; i < value.high.size(); ++i) {
    scores.score.push_back({value.high[i], i < value.low.size() ? value.low[i] : 0});
    scores.visible.push_back(value.high[i] != -std::numeric_limits<double>::infinity());
  }
  return scores;
}

TensorVerdict judge_selection(const Value& value, const SelectionScores& scores,
                              const SelectionQuestion& question, const StoredTensor& actual,
                              const KernelContract& contract, std::size_t worst) {
  TensorVerdict tensor;
  tensor.actual = actual.name;
  tensor.shape = value.shape;
  tensor.dtype = actual.dtype;
  tensor.kind = value.kind;
  tensor.selection = true;
  const bool ordered = value.kind == Kind::integer;
  if (actual.shape != value.shape) {
    tensor.reason = "shape " + to_string(actual.shape) + ", expected " + to_string(value.shape);
  } else if (is_real(actual.dtype) || (ordered && !is_integer(actual.dtype))) {
    tensor.reason =
        std::string(name_of(actual.dtype)) + ", expected " + (ordered ? "integers" : "booleans");
  }
  if (!tensor.reason.empty()) {
    tensor.verdict = Verdict::fail;
    tensor.margin = tensor.margin2 = infinity;
    return tensor;
  }
  const std::int64_t width = value.shape.empty() ? 0 : value.shape.back();
  tensor.count = scores.rows;
  for (std::int64_t row = 0; row < scores.rows; ++row) {
    std::vector<std::int64_t> keys;
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t element = integer_element(actual, row * width + i);
      if (ordered && element != -1) keys.push_back(element);
      if (!ordered && element != 0) keys.push_back(i);
    }
    JudgedElement e = Row(scores, question, contract.selection, row).judge(keys, ordered);
    e.position = row;
    ++tensor.counts[static_cast<std::size_t>(e.verdict)];
    tensor.verdict = worse(tensor.verdict, e.verdict);
    tensor.margin = std::max(tensor.margin, e.margin);
    tensor.margin2 = std::max(tensor.margin2, e.margin2);
    tensor.margins.push_back(static_cast<float>(e.margin));
    note(tensor, std::move(e), worst);
  }
  return tensor;
}

}  // namespace plumbline
