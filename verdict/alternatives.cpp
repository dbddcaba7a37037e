// The same case under other conventions. What is tried follows from the registry: every other preset, every other
// choice of an option, every integer option one up and one down, every optional input left out, the last keys hidden,
// and every other contract. A try that the operation refuses is none.
#include <algorithm>
#include <set>

#include "reference/error.hpp"
#include "verdict/contract.hpp"
#include "verdict/hints.hpp"

namespace plumbline {
namespace {

struct Attempt {
  std::string text;
  Problem problem;
  const KernelContract* contract = nullptr;
};

class Alternatives {
 public:
  Alternatives(const CheckQuestion& question, const Problem& problem)
      : operation_(*question.operation), question_(question), problem_(problem) {}

  std::vector<Attempt> list() {
    presets();
    options(operation_.options, {}, problem_.options);
    inputs();
    last_keys();
    for (const ContractPreset& preset : contract_presets()) {
      if (preset.name != question_.contract.name)
        attempts_.push_back({"contract " + std::string(preset.name), problem_, &preset.contract});
    }
    return std::move(attempts_);
  }

 private:
  void presets() {
    // What presets disagree about is theirs to say; the case keeps the rest.
    std::set<std::string> theirs;
    for (const PresetInfo& preset : operation_.presets) {
      for (const auto& [key, value] : preset.options.items()) {
        if (operation_.presets.front().options[key] != value) theirs.insert(key);
      }
    }
    for (const PresetInfo& preset : operation_.presets) {
      Attempt attempt{"preset " + preset.name, problem_};
      for (const std::string& key : theirs) attempt.problem.options.erase(key);
      attempt.problem.options["preset"] = preset.name;
      attempts_.push_back(std::move(attempt));
    }
  }

  void set(const std::vector<std::string>& path, const Json& value) {
    Attempt attempt{"", problem_};
    Json* place = &attempt.problem.options;
    std::string name;
    for (const std::string& key : path) {
      if (!place->is_object()) return;
      place = &(*place)[key];
      name += (name.empty() ? "" : ".") + key;
    }
    *place = value;
    attempt.text =
        "option " + name + " " + (value.is_string() ? value.get<std::string>() : value.dump());
    attempts_.push_back(std::move(attempt));
  }

  void options(const std::vector<OptionInfo>& infos, const std::vector<std::string>& path,
               const Json& given) {
    const Json resolved = path.empty() ? operation_.resolve(problem_.options) : given;
    for (const OptionInfo& info : infos) {
      std::vector<std::string> here = path;
      here.push_back(info.name);
      const Json now = resolved.is_object() && resolved.contains(info.name) ? resolved[info.name]
                                                                            : info.fallback;
      if (info.type == "bool" && now.is_boolean()) set(here, !now.get<bool>());
      if (info.type == "choice" && info.name != "nonfinite") {
        for (const std::string& choice : info.choices) {
          if (now != choice) set(here, choice);
        }
      }
      if (info.type == "integer" && now.is_number_integer()) {
        for (const int step : {1, -1}) set(here, now.get<std::int64_t>() + step);
      }
      if (info.type == "mode") {
        for (const std::string& choice : info.choices) {
          if (choice.find(' ') == std::string::npos && now != choice) set(here, choice);
        }
      }
      if (info.type == "object" && now.is_object() && info.name != "mask")
        options(info.inner, here, now);
      if (info.type == "object" && info.name == "mask")
        options(info.inner, here, now.is_object() ? now : Json::object());
    }
    // The usual suspects among numbers: no scale, and the scale of the width.
    for (const OptionInfo& info : infos) {
      if (info.type != "number" || info.name.find("scale") == std::string::npos) continue;
      std::vector<std::string> here = path;
      here.push_back(info.name);
      set(here, 1.0);
    }
  }

  void inputs() {
    for (const TensorInfo& input : operation_.inputs) {
      if (input.required || problem_.in.count(input.name) == 0) continue;
      Attempt attempt{"without in." + input.name, problem_};
      attempt.problem.in.erase(input.name);
      attempts_.push_back(std::move(attempt));
    }
  }

  // Keys hidden through in.valid, from the end: what a kernel computes that forgets its last chunk.
  void last_keys() {
    const auto info = std::find_if(operation_.inputs.begin(), operation_.inputs.end(),
                                   [](const TensorInfo& input) { return input.name == "valid"; });
    if (info == operation_.inputs.end() || problem_.in.count("valid") > 0) return;
    Shape shape;
    std::string letter;
    for (const char c : info->letters + " ") {
      if (c != ' ') {
        letter += c;
        continue;
      }
      const std::int64_t size = size_of_letter(letter);
      if (size < 0) return;
      shape.push_back(size);
      letter.clear();
    }
    if (shape.size() != 3) return;
    const std::int64_t keys = shape[2];
    std::set<std::int64_t> sizes = {1};
    for (std::int64_t chunk = 2; chunk <= 512; chunk *= 2) {
      sizes.insert(keys % chunk == 0 ? chunk : keys % chunk);
    }
    for (const std::int64_t last : sizes) {
      if (last >= keys) continue;
      const auto valid = std::make_shared<std::vector<std::uint8_t>>(
          static_cast<std::size_t>(count_of(shape)), std::uint8_t{1});
      for (std::size_t i = 0; i < valid->size(); ++i)
        (*valid)[i] = static_cast<std::int64_t>(i) % keys < keys - last ? 1 : 0;
      StoredTensor tensor;
      tensor.name = "in.valid";
      tensor.data = reinterpret_cast<const std::byte*>(valid->data());
      tensor.dtype = Dtype::boolean;
      tensor.shape = shape;
      tensor.stride = row_major(shape);
      tensor.owner = valid;
      tensor.present = true;
      Attempt attempt{
          "the last " + std::to_string(last) + " of " + std::to_string(keys) + " keys left out",
          problem_};
      attempt.problem.in.insert_or_assign("valid", tensor);
      attempts_.push_back(std::move(attempt));
    }
  }
  // −1 where no input tells; blocks are floor(S/m).
  std::int64_t size_of_letter(const std::string& letter) const {
    for (const TensorInfo& input : operation_.inputs) {
      const auto tensor = problem_.in.find(input.name);
      if (tensor == problem_.in.end()) continue;
      std::size_t axis = 0;
      std::string word;
      for (const char c : input.letters + " ") {
        if (c != ' ') {
          word += c;
          continue;
        }
        if (word == letter && axis < tensor->second.shape.size()) return tensor->second.shape[axis];
        word.clear();
        ++axis;
      }
    }
    if (letter == "T") return size_of_letter("S");
    if (letter != "N") return -1;
    const std::int64_t tokens = size_of_letter("S");
    const auto m = problem_.options.find("m");
    if (tokens < 0 || m == problem_.options.end() || !m->is_number_integer() || *m < 1) return -1;
    return tokens / m->get<std::int64_t>();
  }

  const Operation& operation_;
  const CheckQuestion& question_;
  const Problem& problem_;
  std::vector<Attempt> attempts_;
};

}  // namespace

std::vector<std::string> alternatives_of(const CheckQuestion& question,
                                         const CheckSettings& settings, const Problem& problem,
                                         const std::vector<ActualTensor>& failed) {
  std::vector<std::string> hints;
  std::set<std::string> seen;
  const Operation& operation = *question.operation;
  const Json now = operation.resolve(problem.options);
  for (const Attempt& attempt : Alternatives(question, problem).list()) {
    CheckQuestion other = question;
    if (attempt.contract != nullptr) other.contract = *attempt.contract;
    bool fits = true;
    try {
      const Json resolved = operation.resolve(attempt.problem.options);
      if (attempt.problem.options != problem.options && resolved == now) continue;
      const Judge judge(other, settings);
      const Result result = judge.evaluate(attempt.problem, failed);
      for (const ActualTensor& each : failed) {
        fits = fits && result.find(each.name, each.gradient) != nullptr &&
               judge.verdict_on(each, result, attempt.problem).verdict <= Verdict::suspect;
        if (!fits) break;
      }
    } catch (const Error&) {
      continue;
    }
    if (fits && seen.insert(attempt.text).second)
      hints.push_back("what failed fits " + attempt.text);
  }
  return hints;
}

}  // namespace plumbline
