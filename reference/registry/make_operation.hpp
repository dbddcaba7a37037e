// reference/registry/make_operation.hpp
//
// Erases the types of an operation. An Op says: name, summary, formula, honours, Options, Inputs, Cotangents,
// Outputs<T>, Gradients<T>, forward<T>, backward<T>; and, where they apply,
//   presets()                  a span of {name, doc, apply(Options&)}, the first is the default
//   has_surrogate(options)     the gradient belongs to another function than the value
//   reaches(output, input)     false where the gradient through an output is stopped on the way
//   takes(input, options)      false for an optional input that these options have no use for
//   derived(letter, options, size)   what a letter is that others make; size() says what those are
//   mask_view(in, options)     who sees whom (MaskView of reference/mask), for pictures
//   outputs_can_be_given       false: only what Inputs::fields names as given may be given
#pragma once
#include <algorithm>

#include "reference/mask/mask.hpp"
#include "reference/operation/run.hpp"
#include "reference/registry/option_visitors.hpp"
#include "reference/registry/output_visitors.hpp"
#include "reference/registry/tensor_binding.hpp"

namespace plumbline {

Run make_run(const Operation& operation, const Problem& problem, const Evaluation& how);
// The tensors of problem.given that stand for outputs; Error for any other that `taken` does not hold.
Tensors given_outputs(const Operation& operation, const Problem& problem, bool allowed);
// Error for a cotangent that the operation does not take, read or not.
void check_cotangents(const Operation& operation, const Problem& problem);
// Cotangents of given outputs are those of constants; Error when none is left and the operation has no loss.
Tensors live_cotangents(const Operation& operation, const Problem& problem, const Tensors& given);

template <class Op>
concept HasPresets = requires {
  Op::presets();
};

template <class Op>
concept HasMaskView = requires(const typename Op::Inputs& in, const typename Op::Options& options) {
  Op::mask_view(in, options);
};

template <class Op> class OperationOf final : public Operation {
  using Options = typename Op::Options;

 public:
  OperationOf() {
    name = Op::name;
    summary = Op::summary;
    formula = Op::formula;
    for (const std::string_view key : Op::honours) honours.emplace_back(key);

    has_mask_view = HasMaskView<Op>;
    typename Op::Inputs in;
    TensorLister tensors;
    in.fields(tensors);
    inputs = tensors.in;
    given = tensors.given_tensors;
    typename Op::Cotangents cot;
    TensorLister back;
    cot.fields(back);
    cotangents = back.in;
    typename Op::template Outputs<f64> out;
    OutputLister listed;
    out.fields(listed);
    outputs = listed.list;

    NonFinite nonfinite{};
    Options defaults = initial(Json::object());
    OptionLister lister;
    defaults.fields(lister);
    lister("nonfinite", nonfinite,
           "a NaN or infinity that a real row reads: an error, or the limits of the formulas");
    options = lister.list;
    if constexpr (HasPresets<Op>) {
      for (const auto& preset : Op::presets()) {
        Options set;
        preset.apply(set);
        OptionWriter writer;
        set.fields(writer);
        presets.push_back({std::string(preset.name), std::string(preset.doc), writer.json});
      }
    }
  }

  Json resolve(const Json& json) const override {
    NonFinite nonfinite{};
    Options read = parse(json, nonfinite);
    OptionWriter writer;
    read.fields(writer);
    writer("nonfinite", nonfinite, "");
    return writer.json;
  }

  bool has_surrogate(const Json& json) const override {
    if constexpr (requires(const Options& o) { Op::has_surrogate(o); }) {
      NonFinite nonfinite{};
      return Op::has_surrogate(parse(json, nonfinite));
    } else {
      (void)json;
      return false;
    }
  }

  bool reaches(std::string_view output, std::string_view input) const override {
    if constexpr (requires { Op::reaches(output, input); }) {
      return Op::reaches(output, input);
    } else {
      return true;
    }
  }

  bool takes(std::string_view input, const Json& json) const override {
    if constexpr (requires(const Options& o) { Op::takes(input, o); }) {
      NonFinite nonfinite{};
      return Op::takes(input, parse(json, nonfinite));
    } else {
      (void)input, (void)json;
      return true;
    }
  }

  std::optional<std::int64_t> derived(std::string_view letter, const Json& json,
                                      const SizeOf& size) const override {
    if constexpr (requires(const Options& o) { Op::derived(letter, o, size); }) {
      NonFinite nonfinite{};
      return Op::derived(letter, parse(json, nonfinite), size);
    } else {
      (void)letter, (void)json, (void)size;
      return std::nullopt;
    }
  }

  std::shared_ptr<const MaskView> mask_view(const Problem& problem) const override {
    if constexpr (HasMaskView<Op>) {
      NonFinite nonfinite{};
      const Options read = parse(problem.options, nonfinite);
      typename Op::Inputs in;
      const Tensors replaced = bind(problem, nonfinite, in);
      MaskView seen = Op::mask_view(in, read);
      const bool named = seen.selected.given() || seen.indices.given();
      for (auto [key, tensor] :
           {std::pair("indices", &seen.indices), {"selected", &seen.selected}}) {
        const auto found = replaced.find(key);  // an output of the operation, given
        if (!named && found != replaced.end()) *tensor = found->second;
      }
      return std::make_shared<MaskView>(std::move(seen));
    } else {
      (void)problem;
      return nullptr;
    }
  }

  Result evaluate(const Problem& problem, const Evaluation& how) const override {
    if (how.contract != nullptr) return evaluate_under(*how.contract, problem, how);
    switch (how.precision) {
      case Precision::f32: return evaluate_in<f32>(problem, how);
      case Precision::f64: return evaluate_in<f64>(problem, how);
      case Precision::f192: return evaluate_in<f192>(problem, how);
      case Precision::mp50: return evaluate_in<mp50>(problem, how);
      case Precision::mp100: return evaluate_in<mp100>(problem, how);
      default: break;  // the others belong to a contract
    }
    throw Error("precision", "an unknown value", "f32, f64, f192, mp50 or mp100");
  }

 private:
  // A double is exact enough beside units of f32; finer units need a finer value.
  Result evaluate_under(const Contract& contract, const Problem& problem,
                        const Evaluation& how) const {
    struct Obeyed {
      Arithmetic arithmetic;
      const Arithmetic* before = this_arithmetic();
      explicit Obeyed(const Contract& c) : arithmetic(arithmetic_of(c)) {
        this_arithmetic() = &arithmetic;
      }
      ~Obeyed() { this_arithmetic() = before; }
    } const obeyed(contract);
    if (how.precision == Precision::simulated) return evaluate_in<Simulated>(problem, how);
    return obeyed.arithmetic.unit >= 0x1p-24 ? evaluate_in<Bounded<f64>>(problem, how)
                                             : evaluate_in<Bounded<f192>>(problem, how);
  }

  static Options initial(const Json& json) {
    Options options;
    if constexpr (HasPresets<Op>) {
      const auto table = Op::presets();
      const Json asked = json.is_object() && json.contains("preset")
                             ? json["preset"]
                             : Json(std::string(table[0].name));
      std::vector<std::string> names;
      for (const auto& preset : table) {
        names.emplace_back(preset.name);
        if (asked == std::string(preset.name)) {
          preset.apply(options);
          return options;
        }
      }
      throw Error("option preset", json_text(asked), "one of " + joined(names));
    } else {
      (void)json;
      return options;
    }
  }

  static Options parse(const Json& json, NonFinite& nonfinite) {
    OptionReader reader(json, "option ");
    Options read = initial(json);
    if (HasPresets<Op>) reader.allow("preset");
    reader("nonfinite", nonfinite, "");
    read.fields(reader);
    reader.finish();
    return read;
  }

  static constexpr bool outputs_can_be_given() {
    if constexpr (requires { Op::outputs_can_be_given; }) {
      return Op::outputs_can_be_given;
    } else {
      return true;
    }
  }

  // The inputs by name, and what of the outputs is given.
  Tensors bind(const Problem& problem, NonFinite nonfinite, typename Op::Inputs& in) const {
    Tensors replaced = given_outputs(*this, problem, outputs_can_be_given());
    std::vector<std::string> replaced_names;
    for (const auto& [given_name, tensor] : replaced) replaced_names.push_back(given_name);
    TensorBinder binder(problem, nonfinite);
    in.fields(binder);
    binder.finish(From::in, {});
    binder.finish(From::given, replaced_names);
    return replaced;
  }

  template <class T> Result evaluate_in(const Problem& problem, const Evaluation& how) const {
    NonFinite nonfinite{};
    const Options read = parse(problem.options, nonfinite);
    Run run = make_run(*this, problem, how);
    typename Op::Inputs in;
    const Tensors replaced = bind(problem, nonfinite, in);
    check_cotangents(*this, problem);

    Result result;
    if (how.forward) {
      run.work = &result.forward;
      auto out = Op::template forward<T>(in, read, run);
      ValueCollector collect(replaced, "out.");
      out.fields(collect);
      result.outputs = std::move(collect.values);
    }
    if (how.backward) {
      Problem back;
      back.cot = live_cotangents(*this, problem, replaced);
      typename Op::Cotangents cot;
      TensorBinder cot_binder(back, nonfinite);
      cot_binder.cotangents = true;
      cot.fields(cot_binder);
      run.work = &result.backward;
      auto grad = Op::template backward<T>(in, read, run, cot);
      const Tensors none;
      ValueCollector collect(none, "grad.");
      grad.fields(collect);
      result.gradients = std::move(collect.values);
    }
    return result;
  }
};

template <class Op> const Operation* make_operation() {
  static const OperationOf<Op> operation;
  return &operation;
}

}  // namespace plumbline
