// tests/support/typed.hpp
//
// An operation evaluated with its types: results stay arrays of the working precision, so that more than the 106
// bits of a file's pair can be compared. Same path as the registry: presets, options, binding, run.
#pragma once
#include <map>
#include <string>

#include "reference/registry/make_operation.hpp"

namespace plumbline::support {

template <class T> struct Typed {
  std::map<std::string, Array<T>, std::less<>> outputs, gradients;
  std::map<std::string, Array<std::uint8_t>, std::less<>> flags;
  std::map<std::string, Array<std::int32_t>, std::less<>> integers;
  Work forward, backward;

  const Array<T>& out(std::string_view name) const { return outputs.find(name)->second; }
  const Array<T>& grad(std::string_view name) const { return gradients.find(name)->second; }
};

template <class T> class ArrayCollector {
 public:
  ArrayCollector(Typed<T>& typed, bool gradients) : typed_(typed), gradients_(gradients) {}
  void operator()(std::string_view name, Array<T>& array, std::string_view = "",
                  std::string_view = "") {
    if (array.given())
      (gradients_ ? typed_.gradients : typed_.outputs).emplace(name, std::move(array));
  }
  void operator()(std::string_view name, Array<std::uint8_t>& array, std::string_view = "",
                  std::string_view = "") {
    if (array.given()) typed_.flags.emplace(name, std::move(array));
  }
  void operator()(std::string_view name, Array<std::int32_t>& array, std::string_view = "",
                  std::string_view = "") {
    if (array.given()) typed_.integers.emplace(name, std::move(array));
  }
  template <class U>
  void on_request(std::string_view name, Array<U>& array, std::string_view, std::string_view) {
    (*this)(name, array);
  }

 private:
  Typed<T>& typed_;
  bool gradients_;
};

template <class Op> typename Op::Options options_of(const Json& json, NonFinite& nonfinite) {
  typename Op::Options options;
  OptionReader reader(json, "option ");
  if constexpr (HasPresets<Op>) {
    const auto table = Op::presets();
    const std::string asked = json.value("preset", std::string(table[0].name));
    for (const auto& preset : table) {
      if (preset.name == asked) preset.apply(options);
    }
    reader.allow("preset");
  }
  reader("nonfinite", nonfinite, "");
  options.fields(reader);
  reader.finish();
  return options;
}

template <class Op, class T>
Typed<T> evaluate(const Problem& problem, Evaluation how = {.backward = true}) {
  NonFinite nonfinite{};
  const typename Op::Options options = options_of<Op>(problem.options, nonfinite);
  Run run = make_run(operation(Op::name), problem, how);
  typename Op::Inputs in;
  TensorBinder binder(problem, nonfinite);
  in.fields(binder);
  Typed<T> typed;
  if (how.forward) {
    run.work = &typed.forward;
    auto out = Op::template forward<T>(in, options, run);
    ArrayCollector<T> collect(typed, false);
    out.fields(collect);
  }
  if (how.backward) {
    typename Op::Cotangents cot;
    TensorBinder cotangents(problem, nonfinite);
    cotangents.cotangents = true;
    cot.fields(cotangents);
    run.work = &typed.backward;
    auto grad = Op::template backward<T>(in, options, run, cot);
    ArrayCollector<T> collect(typed, true);
    grad.fields(collect);
  }
  return typed;
}

}  // namespace plumbline::support
