#include "tests/mutants/rules.hpp"

#include <algorithm>
#include <cmath>

namespace plumbline::mutants {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool of_computed_scores(const Operation& operation, const Value& value) {
  if (!ends_with(value.name, "indices") && !ends_with(value.name, "selected")) return false;
  return std::none_of(operation.inputs.begin(), operation.inputs.end(),
                      [](const TensorInfo& input) { return input.name == "scores"; });
}

bool same_non_finite(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void judge_real(const Value& value, const Value& executed, Killed& killed) {
  const auto kill = [&](Rule rule) { killed[static_cast<std::size_t>(rule)] = true; };
  double dot = 0, norm_x = 0, norm_v = 0, squares = 0;
  for (std::size_t i = 0; i < value.high.size(); ++i) {
    const double v = value.high[i], x = executed.high[i];
    if (!std::isfinite(v) || !std::isfinite(x)) {
      if (!same_non_finite(v, x)) killed.fill(true);
      continue;
    }
    const double off = std::fabs((x - v) - value.low[i]), size = std::fabs(v);
    const double bound = value.bound[i];
    const double stored = bound == 0 && size == 0 ? 0 : bound + 0x1p-24 * (size + bound) + 0x1p-149;
    if (off > stored) kill(Rule::ours);
    if (off > 1e-2 + 1e-2 * size) kill(Rule::allclose);
    if (off > 1e-5 + 1.6e-2 * size) kill(Rule::torch_bf16);
    dot += x * v, norm_x += x * x, norm_v += v * v, squares += off * off;
  }
  const double norms = std::sqrt(norm_x) * std::sqrt(norm_v);
  if (norms > 0 ? 1 - dot / norms >= 1e-3 : norm_x != norm_v) kill(Rule::cosine);
  if (norm_v > 0 ? squares / norm_v >= 5e-4 : squares > 0) kill(Rule::nmse);
}

void judge_list(const Operation& operation, const std::vector<Value>& bounded, const Result& executed,
                bool gradients, Killed& killed) {
  for (const Value& value : bounded) {
    if (of_computed_scores(operation, value)) continue;
    const Value* const x = executed.find(value.name, gradients);
    if (x == nullptr || x->shape != value.shape) {
      killed.fill(true);
    } else if (value.kind == Kind::real) {
      judge_real(value, *x, killed);
    } else if (value.integers != x->integers || value.booleans != x->booleans) {
      killed.fill(true);
    }
  }
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_non_finite);
}

}  // namespace

Killed judge(const Operation& operation, const Result& bounded, const Result& executed) {
  Killed killed{};
  judge_list(operation, bounded.outputs, executed, false, killed);
  judge_list(operation, bounded.gradients, executed, true, killed);
  return killed;
}

bool same(const Result& a, const Result& b) {
  const auto equal = [](const Value& x, const Value& y) {
    return x.shape == y.shape && same_bits(x.high, y.high) && x.integers == y.integers &&
           x.booleans == y.booleans;
  };
  return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), equal) &&
         std::equal(a.gradients.begin(), a.gradients.end(), b.gradients.begin(), b.gradients.end(),
                    equal);
}

}  // namespace plumbline::mutants
