#include "bindings/c/boundary.hpp"

using namespace plumbline;
using namespace plumbline::bindings;

struct plumbline_result {
  Result result;
  std::vector<std::string> names;  // full, outputs first

  explicit plumbline_result(Result r) : result(std::move(r)) {
    for (const Value& value : result.outputs) names.push_back("out." + value.name);
    for (const Value& value : result.gradients) names.push_back("grad." + value.name);
  }
  const Value& value(std::size_t i) const {
    const std::size_t outputs = result.outputs.size();
    return i < outputs ? result.outputs[i] : result.gradients[i - outputs];
  }
  void tell(std::size_t i, plumbline_value* foreign) const {
    const Value& from = value(i);
    const auto data = [](const auto& list) { return list.empty() ? nullptr : list.data(); };
    plumbline_value to{};
    to.name = names[i].c_str();
    to.kind = static_cast<plumbline_kind>(from.kind);
    to.rank = static_cast<std::int32_t>(from.shape.size());
    to.shape = from.shape.data();
    to.count = count_of(from.shape);
    to.high = data(from.high);
    to.low = data(from.low);
    to.integers = data(from.integers);
    to.booleans = data(from.booleans);
    to.bound = data(from.bound);
    to.bound2 = data(from.bound2);
    to.gauge = data(from.gauge);
    write(foreign, to, "value");
  }
};

namespace {

template <class F> plumbline_status made(plumbline_result** result, F f) noexcept {
  return guarded([&] {
    at(result, "result") = nullptr;
    *result = std::make_unique<plumbline_result>(f()).release();
  });
}

static_assert(static_cast<int>(Kind::real) == PLUMBLINE_REAL &&
              static_cast<int>(Kind::integer) == PLUMBLINE_INTEGER &&
              static_cast<int>(Kind::boolean) == PLUMBLINE_BOOLEAN);

}  // namespace

extern "C" {

plumbline_status plumbline_evaluate(const plumbline_request* request, plumbline_result** result) {
  return made(result, [&] { return evaluate(call_of(request)); });
}

plumbline_status plumbline_bound(const plumbline_request* request, plumbline_result** result) {
  return made(result, [&] { return bound(call_of(request)); });
}

size_t plumbline_result_count(const plumbline_result* result) {
  return result == nullptr ? 0 : result->names.size();
}

plumbline_status plumbline_result_at(const plumbline_result* result, size_t index,
                                     plumbline_value* value) {
  return guarded([&] {
    const std::size_t count = at(result, "result").names.size();
    if (index >= count)
      throw Error("index", std::to_string(index), "less than " + std::to_string(count));
    result->tell(index, value);
  });
}

plumbline_status plumbline_result_find(const plumbline_result* result, const char* name,
                                       plumbline_value* value) {
  return guarded([&] {
    const auto& names = at(result, "result").names;
    const std::string wanted = text_at(name, "name");
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == wanted) return result->tell(i, value);
    }
    std::string list;
    for (const std::string& each : names) list += (list.empty() ? "" : ", ") + each;
    throw Error("name", "\"" + wanted + "\"", "one of " + list);
  });
}

void plumbline_result_free(plumbline_result* result) { delete result; }

}  // extern "C"
