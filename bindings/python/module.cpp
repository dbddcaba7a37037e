// plumbline._plumbline: the library's calls as Python sees them, with JSON as text and results as tuples. What users
// meet is written in Python, beside this.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/core/dlpack.hpp"
#include "bindings/python/arrays.hpp"
#include "bindings/python/interruptible.hpp"
#include "reference/error.hpp"
#include "reference/registry/description.hpp"
#include "verdict/check_report.hpp"

#ifndef PLUMBLINE_VERSION
#define PLUMBLINE_VERSION "unversioned"
#endif

namespace plumbline::bindings {
namespace {

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What every call takes. Arrays are borrowed until it returns.
struct PythonCall {
  BorrowedTensors borrowed;
  Call call;

  PythonCall(std::string op, std::string options, std::string schedule, std::string precision,
             std::string contract, std::vector<std::string> outputs, nb::list tensors,
             bool gradient, int threads)
      : borrowed(std::move(tensors)) {
    call.op = std::move(op);
    call.options = std::move(options);
    call.schedule = std::move(schedule);
    call.precision = std::move(precision);
    call.contract = std::move(contract);
    call.outputs = std::move(outputs);
    call.tensors = borrowed.tensors;
    call.gradient = gradient;
    call.threads = threads;
  }
};

nb::tuple tuple_of_result(Result result) {
  nb::dict outputs, gradients;
  for (Value& value : result.outputs) outputs[value.name.c_str()] = tuple_of(value);
  for (Value& value : result.gradients) gradients[value.name.c_str()] = tuple_of(value);
  return nb::make_tuple(outputs, gradients);
}

nb::tuple tuple_of_case(const OpenCase& a_case) {
  return nb::make_tuple(list_of(a_case.tensors), a_case.metadata);
}

// plumbline.Error, a ValueError with where, found and expected.
nb::object& error_class() {
  static nb::object* const held = new nb::object();  // outlives the interpreter's last use
  return *held;
}

void raise(const Error& error) {
  nb::object raised = error_class()(error.what());
  raised.attr("where") = error.where();
  raised.attr("found") = error.found();
  raised.attr("expected") = error.expected();
  PyErr_SetObject(error_class().ptr(), raised.ptr());
}

void add_functions(nb::module_& m) {
  m.def("version", [] { return PLUMBLINE_VERSION; });
  m.def("operations", [] { return text_of(operation_list()); });
  m.def("describe", [](const std::string& op) { return text_of(description_of(operation(op))); });
  m.def("resolve", [](const std::string& op, const std::string& options) {
    return text_of(resolve(op, options));
  });
  m.def("contract", [](const std::string& contract) { return text_of(contract_of(contract)); });
  m.def("families", [] { return text_of(family_list()); });
  m.def("evaluate", [](const PythonCall& asked) {
    return tuple_of_result(interruptible([&] { return evaluate(asked.call); }));
  });
  m.def("bound", [](const PythonCall& asked) {
    return tuple_of_result(interruptible([&] { return bound(asked.call); }));
  });
  m.def("check", [](const PythonCall& asked, std::size_t worst, bool hints) {
    CheckSettings settings;
    settings.worst = worst;
    settings.hints = hints;
    return interruptible([&] { return check(asked.call, settings); });
  });
  m.def("generate", [](const std::string& request, int threads) {
    return tuple_of_case(interruptible([&] { return generate(request, threads); }));
  });
  m.def("load", [](const std::string& path) { return tuple_of_case(load(path)); });
  m.def("save",
        [](const std::string& path, nb::list tensors, std::map<std::string, std::string> metadata) {
          const BorrowedTensors borrowed(std::move(tensors));
          save(path, {borrowed.tensors, std::move(metadata)});
        });
  // An array of codes as what it stands for, with __dlpack__: numpy has no bf16 to give.
  m.def("with_dtype", [](nb::ndarray<nb::ro> array, const std::string& name) {
    const auto dtype = dtype_named(name);
    if (!dtype) throw Error("dtype", "\"" + name + "\"", "a dtype of files, as BF16");
    const dlpack::DataType type = dlpack::type_of(*dtype);
    std::vector<std::size_t> shape(array.ndim());
    std::vector<std::int64_t> stride(array.ndim());
    for (std::size_t i = 0; i < array.ndim(); ++i)
      shape[i] = array.shape(i), stride[i] = array.stride(i);
    return nb::ndarray<nb::ro, nb::array_api>(array.data(), shape.size(), shape.data(),
                                              nb::find(array), stride.data(),
                                              {type.code, type.bits, type.lanes});
  });
}

}  // namespace
}  // namespace plumbline::bindings

NB_MODULE(_plumbline, m) {
  namespace nb = nanobind;
  using namespace plumbline;
  using namespace plumbline::bindings;
  error_class() = nb::module_::import_("plumbline._error").attr("Error");
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      raise(error);
    }
  });
  nb::class_<PythonCall>(m, "Call").def(
      nb::init<std::string, std::string, std::string, std::string, std::string,
               std::vector<std::string>, nb::list, bool, int>());
  nb::class_<CheckReport>(m, "Report")
      .def("json", [](const CheckReport& r) { return text_of(to_json(r)); })
      .def("html", [](const CheckReport& r) { return html_of(r); })
      .def("svg", [](const CheckReport& r) { return svg_of(r); })
      .def("junit", [](const CheckReport& r, bool strict) { return junit_of(r, strict); });
  add_functions(m);
}
