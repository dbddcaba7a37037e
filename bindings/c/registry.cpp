// What there is: operations, options, contracts.
#include "bindings/c/boundary.hpp"
#include "reference/registry/description.hpp"

using namespace plumbline;
using namespace plumbline::bindings;

namespace {

template <class F> plumbline_status answer(char** json, F f) noexcept {
  return guarded([&] {
    at(json, "json") = nullptr;
    *json = copy_of(text_of(f()));
  });
}

}  // namespace

extern "C" {

plumbline_status plumbline_operations(char** json) {
  return answer(json, [] { return operation_list(); });
}

plumbline_status plumbline_describe(const char* op, char** json) {
  return answer(json, [&] { return description_of(operation(text_at(op, "op"))); });
}

plumbline_status plumbline_resolve(const char* op, const char* options, char** json) {
  return answer(json, [&] { return resolve(text_at(op, "op"), text_or_none(options)); });
}

plumbline_status plumbline_contract(const char* contract, char** json) {
  return answer(json, [&] { return contract_of(text_or_none(contract)); });
}

}  // extern "C"
