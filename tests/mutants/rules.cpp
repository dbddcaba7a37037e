#include "tests/mutants/rules.hpp"

#include <algorithm>
#include <cmath>

#include "tests/mutants/edits.hpp"
#include "verdict/judge.hpp"

namespace plumbline::mutants {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Scores of the operation's own, which a selection goes by.
const Value* scores_behind(const Result& bounded, const Value& value) {
  return ends_with(value.name, "indices") || ends_with(value.name, "selected")
             ? bounded.find("scores")
             : nullptr;
}

StoredTensor stored(const Value& value) {
  Tensors one;
  put(one, value.name, numbers_of(value),
      value.kind == Kind::real      ? Dtype::f32
      : value.kind == Kind::integer ? Dtype::i32
                                    : Dtype::boolean);
  return one.begin()->second;
}

bool same_non_finite(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void judge_real(const Value& value, const Value& executed, Killed& killed) {
  const auto kill = [&](Rule rule) { killed[static_cast<std::size_t>(rule)] = true; };
  double dot = 0, norm_x = 0, norm_v = 0, squares = 0;
  for (std::size_t i = 0; i < value.high.size(); ++i) {
    const double v = value.high[i], x = executed.high[i];
    if (!std::isfinite(v) || !std::isfinite(x)) {
      if (same_non_finite(v, x)) continue;
      for (const Rule rule : {Rule::allclose, Rule::torch_bf16, Rule::cosine, Rule::nmse})
        kill(rule);
      continue;
    }
    const double off = std::fabs(x - v), size = std::fabs(v);
    if (off > 1e-2 + 1e-2 * size) kill(Rule::allclose);
    if (off > 1e-5 + 1.6e-2 * size) kill(Rule::torch_bf16);
    dot += x * v, norm_x += x * x, norm_v += v * v, squares += off * off;
  }
  const double norms = std::sqrt(norm_x) * std::sqrt(norm_v);
  if (norms > 0 ? 1 - dot / norms >= 1e-3 : norm_x != norm_v) kill(Rule::cosine);
  if (norm_v > 0 ? squares / norm_v >= 5e-4 : squares > 0) kill(Rule::nmse);
}

struct Question {
  const Json& options;
  const Result& bounded;
  const KernelContract& contract;
};

void judge_value(const Question& question, const Value& value, const Value* executed,
                 Killed& killed) {
  if (executed == nullptr || executed->shape != value.shape) return killed.fill(true);
  const StoredTensor actual = stored(*executed);
  const auto ours = static_cast<std::size_t>(Rule::ours);
  if (const Value* const scores = scores_behind(question.bounded, value)) {
    SelectionQuestion asked;
    asked.k = question.options.at("k");
    asked.threshold = question.options.value("tie", "") == "threshold";
    if (judge_selection(value, scores_of(*scores), asked, actual, question.contract).verdict ==
        Verdict::fail)
      killed.fill(true);
  } else {
    const bool failed = judge(value, actual, question.contract).verdict == Verdict::fail;
    killed[ours] = killed[ours] || failed;
    if (value.kind == Kind::real) {
      judge_real(value, *executed, killed);
    } else if (failed) {
      killed.fill(true);
    }
  }
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_non_finite);
}

}  // namespace

Killed killed_by(const Json& options, const Result& bounded, const Result& executed,
                 const KernelContract& contract) {
  Killed killed{};
  const Question question{options, bounded, contract};
  for (const Value& value : bounded.outputs)
    judge_value(question, value, executed.find(value.name), killed);
  for (const Value& value : bounded.gradients)
    judge_value(question, value, executed.find(value.name, true), killed);
  return killed;
}

bool same(const Result& a, const Result& b) {
  const auto equal = [](const Value& x, const Value& y) {
    return x.shape == y.shape && same_bits(x.high, y.high) && x.integers == y.integers &&
           x.booleans == y.booleans;
  };
  return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                    equal) &&
         std::equal(a.gradients.begin(), a.gradients.end(), b.gradients.begin(), b.gradients.end(),
                    equal);
}

}  // namespace plumbline::mutants
