// reference/registry/operation.hpp
//
// Every operation under its name, with its types erased: what it takes and gives, and how to run it. The command
// line, gradcheck and the generators know operations only through this header.
// Guarantees: nothing in a Problem is ignored; an unknown tensor, option, preset, schedule key or output is an
// Error naming it. Errors of shapes, dtypes and values: reference/error.hpp.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/numeric/contract.hpp"
#include "reference/numeric/precision.hpp"
#include "reference/numeric/work.hpp"
#include "reference/tensor/stored_tensor.hpp"

namespace plumbline {

using Json = nlohmann::json;
using Tensors = std::map<std::string, StoredTensor, std::less<>>;

struct Problem {  // tensors by their names without prefix
  Tensors in, given, cot;
  Json options = Json::object(), schedule = Json::object();
  std::vector<std::string> outputs;  // on request; "all" stands for every one
};

enum class Kind { real, integer, boolean };

struct Value {  // one output or gradient
  std::string name;
  Kind kind = Kind::real;
  Shape shape;
  std::vector<double> high, low;       // real: high + low is good to 1e-31 relative
  std::vector<std::int32_t> integers;  // integer
  std::vector<std::uint8_t> booleans;  // boolean
  std::shared_ptr<const void> exact;   // std::vector<mp100>, of an evaluation in mp100 only
  // Under a contract, of each real element: the proven bound of an execution's error, before the result is stored in
  // the contract's output format (tier 1); the statistical one, where roundings are to nearest (tier 2); the
  // magnitude an error is to be seen against where the value cancels.
  std::vector<double> bound, bound2, gauge;
};

struct Evaluation {
  Precision precision = Precision::f192;
  bool forward = true, backward = false;
  int threads = 1;
  bool surrogate = false;  // losses whose gradient is p - t return the function it belongs to
  // Bounds of the executions it allows come with the values; precision is then chosen by its units.
  const Contract* contract = nullptr;
};

struct Result {
  std::vector<Value> outputs, gradients;
  Work forward, backward;  // counted, see reference/numeric/work.hpp
  const Value* find(std::string_view name, bool gradient = false) const;
};

struct TensorInfo {
  std::string name, letters, doc;
  Kind kind = Kind::real;
  bool required = false, differentiable = false;
};
struct OutputInfo {
  std::string name, letters, doc;
  Kind kind = Kind::real;
  bool on_request = false;
};
struct OptionInfo {
  std::string name, type, doc;
  Json fallback;  // the default; null where there is none
  std::vector<std::string> choices;
  std::vector<OptionInfo> inner;
};
struct PresetInfo {
  std::string name, doc;
  Json options;  // every option as the preset sets it
};

using SizeOf = std::function<std::int64_t(std::string_view letter)>;
struct MaskView;  // reference/mask/mask.hpp

class Operation {
 public:
  virtual ~Operation() = default;
  std::string name, summary, formula;
  std::vector<TensorInfo> inputs, given, cotangents;
  std::vector<OutputInfo> outputs;
  std::vector<OptionInfo> options;
  std::vector<PresetInfo> presets;   // the first is the default
  std::vector<std::string> honours;  // schedule keys
  bool has_mask_view = false;        // that mask_view gives

  virtual Result evaluate(const Problem& problem, const Evaluation& how) const = 0;
  // The options as JSON after preset and defaults; an Error if they are not valid.
  virtual Json resolve(const Json& options) const = 0;
  // The gradient belongs to another function than the value (evaluate with surrogate).
  virtual bool has_surrogate(const Json& options) const = 0;
  // The gradient of an input includes what comes through this output.
  virtual bool reaches(std::string_view output, std::string_view input) const = 0;
  // The options have a use for this optional input.
  virtual bool takes(std::string_view, const Json& /*options*/) const { return true; }
  // The size of a letter that options and other letters make, such as the lanes of a kind; nothing for any other.
  virtual std::optional<std::int64_t> derived(std::string_view /*letter*/, const Json& /*options*/,
                                              const SizeOf&) const {
    return std::nullopt;
  }
  // Who sees whom in a case; null without has_mask_view.
  virtual std::shared_ptr<const MaskView> mask_view(const Problem& problem) const = 0;
};

std::span<const Operation* const> operations();     // in the order of their names
const Operation& operation(std::string_view name);  // Error for an unknown name

}  // namespace plumbline
