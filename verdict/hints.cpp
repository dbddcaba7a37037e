#include "verdict/hints.hpp"

#include <algorithm>
#include <cmath>

#include "reference/error.hpp"

namespace plumbline {
namespace {

struct AxisName {
  std::string_view letter, one, many;
};
constexpr AxisName axis_names[] = {
    {"B", "batch", "batches"},
    {"T", "row", "rows"},
    {"S", "token", "tokens"},
    {"L", "token", "tokens"},
    {"H", "head", "heads"},
    {"Hk", "key head", "key heads"},
    {"A", "indexer head", "indexer heads"},
    {"N", "block", "blocks"},
    {"K", "key", "keys"},
    {"k", "slot", "slots"},
    {"D", "channel", "channels"},
    {"Dv", "channel", "channels"},
    {"e", "channel", "channels"},
    {"E", "channel", "channels"},
    {"dv", "channel", "channels"},
    {"P", "part", "parts"},
    {"G", "group", "groups"},
};
std::string name_of_axis(const TensorVerdict& tensor, std::size_t axis, bool many) {
  std::string letter = axis < tensor.axes.size() ? tensor.axes[axis] : "";
  letter = letter.substr(0, letter.find('|'));  // of alternatives the first
  for (const AxisName& name : axis_names) {
    if (name.letter == letter) return std::string(many ? name.many : name.one);
  }
  return (many ? "indices along " : "index along ") + letter;
}

bool wrong(float margin) { return !(margin <= 1); }

std::string several(const std::vector<std::int64_t>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < 8; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(list[i]);
  return list.size() > 8 ? text + " and " + std::to_string(list.size() - 8) + " more" : text;
}

}  // namespace

std::vector<std::string> places_of(const TensorVerdict& tensor) {
  std::vector<std::string> hints;
  Shape shape = tensor.shape;
  if (tensor.selection && !shape.empty()) shape.pop_back();
  const auto count = static_cast<std::int64_t>(tensor.margins.size());
  std::int64_t bad = 0;
  std::vector<std::vector<std::int64_t>> hits(shape.size());  // wrong elements at each index
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    hits[axis].assign(static_cast<std::size_t>(shape[axis]), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!wrong(tensor.margins[static_cast<std::size_t>(i)])) continue;
    ++bad;
    const Shape index = index_of(shape, i);
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      ++hits[axis][static_cast<std::size_t>(index[axis])];
  }
  if (bad == 0 || bad == count || count < 2) {
    if (bad == count && count > 1) hints.push_back("every element is wrong");
    return hints;
  }
  // Elements that are exactly right say nothing (a hidden key is 0 in any kernel): where all others that share the
  // wrong ones' places on the other axes are wrong too, an axis does not tell them apart.
  std::vector<std::vector<std::uint8_t>> alive(shape.size());
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    alive[axis].assign(static_cast<std::size_t>(shape[axis]), 0);
  std::int64_t region = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (tensor.margins[static_cast<std::size_t>(i)] == 0) continue;
    const Shape index = index_of(shape, i);
    std::size_t outside = 0, last = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (hits[axis][static_cast<std::size_t>(index[axis])] == 0) ++outside, last = axis;
    }
    if (outside == 0) ++region;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (outside == 0 || (outside == 1 && last == axis))
        alive[axis][static_cast<std::size_t>(index[axis])] = 1;
    }
  }
  std::string place;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<std::int64_t> at;
    for (std::int64_t i = 0; i < shape[axis]; ++i) {
      if (hits[axis][static_cast<std::size_t>(i)] > 0) at.push_back(i);
    }
    const auto touched = static_cast<std::int64_t>(at.size());
    if (shape[axis] == 1 ||
        (touched > 1 && touched == std::count(alive[axis].begin(), alive[axis].end(), 1)))
      continue;
    const bool range = touched > 1 && at.back() - at.front() + 1 == touched;
    std::string text = name_of_axis(tensor, axis, touched > 1) + " ";
    text += touched == 1 ? std::to_string(at.front())
            : range      ? std::to_string(at.front()) + " to " + std::to_string(at.back())
                         : several(at);
    if (range && at.back() + 1 == shape[axis])
      text += " (the last " + std::to_string(touched) + " of " + std::to_string(shape[axis]) +
              ": a last chunk that is missing?)";
    place += (place.empty() ? "" : ", ") + text;
  }
  if (place.empty()) return hints;
  hints.push_back((bad == region ? "wrong is all of " : "all that is wrong lies in ") + place);
  return hints;
}

std::vector<std::string> hints_of(const CheckQuestion& question, const CheckSettings& settings,
                                  const Problem& problem, const std::vector<ActualTensor>& actual,
                                  const CheckReport& report) {
  std::vector<std::string> hints;
  std::vector<ActualTensor> failed;
  for (const ActualTensor& each : actual) {
    const TensorVerdict* tensor = report.find((each.gradient ? "grad." : "out.") + each.name);
    if (tensor == nullptr || tensor->verdict != Verdict::fail) continue;
    if (tensor->reason.empty()) failed.push_back(each);
  }
  if (failed.empty()) return hints;
  const Judge judge(question, settings);
  const Result result = judge.evaluate(problem, failed);
  for (const ActualTensor& each : failed) {
    const TensorVerdict& tensor = *report.find((each.gradient ? "grad." : "out.") + each.name);
    std::vector<std::string> own = places_of(tensor);
    const Value* const value = result.find(each.name, each.gradient);
    if (value != nullptr && value->kind == Kind::real && value->shape == each.tensor.shape) {
      const Storage storage = storage_of(question.contract, each.tensor.dtype);
      for (std::string& hint : patterns_of(*value, each.tensor, tensor, storage))
        own.push_back(std::move(hint));
    }
    for (const std::string& hint : own) hints.push_back(tensor.name + ": " + hint);
  }
  for (std::string& hint : alternatives_of(question, settings, problem, failed))
    hints.push_back(std::move(hint));
  return hints;
}

}  // namespace plumbline
