#include "tests/mutants/edits.hpp"

#include <algorithm>
#include <cstring>

#include "reference/tensor/tensor.hpp"

namespace plumbline::mutants {
namespace {

// Calls f(first element of an entry of the axis, stride of the axis) for everything that varies beside it.
template <class F> void along(const Shape& shape, std::size_t axis, F f) {
  std::int64_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) f(o * shape[axis] * inner + i, inner);
}

void write(Value& value, const Numbers& numbers) {
  value.shape = numbers.shape;
  if (value.kind == Kind::real) {
    value.high.clear();
    for (const double x : numbers.at)
      value.high.push_back(static_cast<double>(static_cast<float>(x)));
    value.low.assign(value.high.size(), 0);
  } else if (value.kind == Kind::integer) {
    value.integers.clear();
    for (const double x : numbers.at) value.integers.push_back(static_cast<std::int32_t>(x));
  } else {
    value.booleans.clear();
    for (const double x : numbers.at) value.booleans.push_back(x != 0 ? 1 : 0);
  }
}

Spoil edited(const std::string& name, bool of_gradients, const SceneEdit& edit) {
  return [=](Result& result, const Scene& scene) {
    for (Value& value : of_gradients ? result.gradients : result.outputs) {
      if (value.name != name) continue;
      Numbers numbers = numbers_of(value);
      edit(numbers, scene);
      write(value, numbers);
    }
  };
}

Spoil only(const std::vector<std::string>& names, bool of_gradients) {
  return [=](Result& result, const Scene& scene) {
    const auto mend = [&](std::vector<Value>& list, const std::vector<Value>& right,
                          bool gradients) {
      for (std::size_t i = 0; i < list.size() && i < right.size(); ++i) {
        const bool named = std::find(names.begin(), names.end(), list[i].name) != names.end();
        if (!named || gradients != of_gradients) list[i] = right[i];
      }
    };
    mend(result.outputs, scene.correct.outputs, false);
    mend(result.gradients, scene.correct.gradients, true);
  };
}

Change edited_tensor(const std::string& name, Dtype dtype, bool cotangents, const Edit& edit) {
  return [=](Problem& problem, const Scene&) {
    Tensors& tensors = cotangents ? problem.cot : problem.in;
    const auto found = tensors.find(name);
    if (found == tensors.end()) return;
    Numbers numbers = numbers_of(found->second);
    edit(numbers);
    put(tensors, name, numbers, dtype);
  };
}

const StoredTensor* first_of(const Problem& problem, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const auto found = problem.in.find(name);
    if (found != problem.in.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

std::size_t Numbers::place(std::initializer_list<std::int64_t> index) const {
  std::int64_t element = 0;
  std::size_t axis = 0;
  for (const std::int64_t i : index) element = element * shape[axis++] + i;
  return static_cast<std::size_t>(element);
}

void Numbers::copy(std::size_t axis, std::int64_t from, std::int64_t to) {
  if (from < 0 || to < 0 || from >= shape[axis] || to >= shape[axis]) return;
  along(shape, axis, [&](std::int64_t first, std::int64_t step) {
    at[static_cast<std::size_t>(first + to * step)] =
        at[static_cast<std::size_t>(first + from * step)];
  });
}

void Numbers::reorder(std::size_t axis, const std::function<std::int64_t(std::int64_t)>& order) {
  const std::vector<double> before = at;
  along(shape, axis, [&](std::int64_t first, std::int64_t step) {
    for (std::int64_t i = 0; i < shape[axis]; ++i)
      at[static_cast<std::size_t>(first + i * step)] =
          before[static_cast<std::size_t>(first + order(i) * step)];
  });
}

void Numbers::fill(std::size_t axis, std::int64_t entry, double value) {
  if (entry < 0 || entry >= shape[axis]) return;
  along(shape, axis, [&](std::int64_t first, std::int64_t step) {
    at[static_cast<std::size_t>(first + entry * step)] = value;
  });
}

void Numbers::cut(std::size_t axis, std::int64_t count) {
  const std::vector<double> before = at;
  const Shape was = shape;
  shape[axis] = count;
  at.clear();
  const std::int64_t whole = was[axis], inner = row_major(was)[axis];
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (static_cast<std::int64_t>(i) / inner % whole < count) at.push_back(before[i]);
  }
}

void Numbers::each(const std::function<double(double)>& f) {
  for (double& x : at) x = f(x);
}

Numbers numbers_of(const StoredTensor& tensor) {
  Numbers numbers{tensor.shape, {}};
  StoredTensor flat = tensor;
  flat.shape = {count_of(tensor.shape)};
  flat.stride = {1};
  for (std::int64_t i = 0; i < flat.shape[0]; ++i) {
    const std::int64_t index[] = {i};
    numbers.at.push_back(is_real(flat.dtype) ? Fetch<double>::element(flat, index)
                         : is_integer(flat.dtype)
                             ? static_cast<double>(integer_at(flat, Index(index)))
                             : static_cast<double>(boolean_at(flat, Index(index))));
  }
  return numbers;
}

Numbers numbers_of(const Value& value) {
  Numbers numbers{value.shape, value.high};
  if (value.kind == Kind::integer) numbers.at.assign(value.integers.begin(), value.integers.end());
  if (value.kind == Kind::boolean) numbers.at.assign(value.booleans.begin(), value.booleans.end());
  return numbers;
}

void put(Tensors& to, const std::string& name, const Numbers& numbers, Dtype dtype) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const auto append = [&](auto x) {
    const std::size_t end = bytes->size();
    bytes->resize(end + sizeof x);
    std::memcpy(bytes->data() + end, &x, sizeof x);
  };
  for (const double x : numbers.at) {
    if (dtype == Dtype::i32) {
      append(static_cast<std::int32_t>(x));
    } else if (dtype == Dtype::boolean) {
      append(static_cast<std::uint8_t>(x != 0));
    } else if (dtype == Dtype::f32) {
      append(static_cast<float>(x));
    } else {
      append(x);
    }
  }
  StoredTensor tensor;
  tensor.name = "in." + name;
  tensor.data = bytes->data();
  tensor.dtype = dtype;
  tensor.shape = numbers.shape;
  tensor.stride = row_major(numbers.shape);
  tensor.owner = bytes;
  tensor.present = true;
  to[name] = tensor;
}

Change all(std::vector<Change> changes) {
  return [=](Problem& problem, const Scene& scene) {
    for (const Change& change : changes) change(problem, scene);
  };
}

Change without(std::vector<std::string> names) {
  return [=](Problem& problem, const Scene&) {
    for (const std::string& name : names) problem.in.erase(name);
  };
}

Change option(const std::string& pointer, const Json& value) {
  return
      [=](Problem& problem, const Scene&) { problem.options[Json::json_pointer(pointer)] = value; };
}

Change input(const std::string& name, const Edit& edit) {
  return edited_tensor(name, Dtype::f64, false, edit);
}
Change integers(const std::string& name, const Edit& edit) {
  return edited_tensor(name, Dtype::i32, false, edit);
}
Change cotangent(const std::string& name, const Edit& edit) {
  return edited_tensor(name, Dtype::f64, true, edit);
}

Change given(const std::string& name, const Edit& edit) {
  return [=](Problem& problem, const Scene& scene) {
    Problem asking = scene.problem;
    asking.outputs = {name};
    const Result right = scene.operation.evaluate(asking, {.precision = Precision::f32});
    const Value* const value = right.find(name);
    Numbers numbers = numbers_of(*value);
    edit(numbers);
    put(problem.given, name, numbers);
  };
}

std::int64_t Stand::position(std::int64_t b, std::int64_t s) const {
  return positions ? static_cast<std::int64_t>((*positions)({b, s})) : s;
}
std::int64_t Stand::segment(std::int64_t b, std::int64_t s) const {
  return segments ? static_cast<std::int64_t>((*segments)({b, s})) : 0;
}

Stand stand_of(const Problem& problem) {
  Stand stand;
  const StoredTensor* const rows = first_of(problem, {"query", "scores", "index_q", "x"});
  stand.batches = rows->shape[0];
  stand.rows = stand.tokens = rows->shape[1];
  const bool attention = problem.in.contains("query");
  if (const StoredTensor* key = first_of(problem, {"kv", "key"})) stand.tokens = key->shape[1];
  if (const StoredTensor* key = first_of(problem, {"segment_ids"})) stand.tokens = key->shape[1];
  stand.m = problem.options.value("m", std::int64_t{0});
  stand.keys = stand.m > 0 ? stand.tokens / stand.m : stand.tokens;
  if (!attention && stand.m == 0 && problem.in.contains("scores"))
    stand.keys = problem.in.at("scores").shape[2];
  for (const auto& [name, to] :
       {std::pair{"positions", &stand.positions}, std::pair{"segment_ids", &stand.segments}}) {
    if (problem.in.contains(name)) *to = numbers_of(problem.in.at(name));
  }
  return stand;
}

Change order(const Sees& sees) {
  return [=](Problem& problem, const Scene&) {
    const Stand stand = stand_of(problem);
    Numbers valid{{stand.batches, stand.rows, stand.keys}, {}};
    valid.at.assign(static_cast<std::size_t>(count_of(valid.shape)), 1);
    if (problem.in.contains("valid")) valid = numbers_of(problem.in.at("valid"));
    for (std::int64_t b = 0; b < stand.batches; ++b)
      for (std::int64_t t = 0; t < stand.rows; ++t)
        for (std::int64_t k = 0; k < stand.keys; ++k)
          if (!sees(stand, b, t, k)) valid({b, t, k}) = 0;
    put(problem.in, "valid", valid, Dtype::boolean);
    problem.options["mask"]["causal"] = false;
  };
}

Change empty_rows_see_all() {
  return [=](Problem& problem, const Scene& scene) {
    order([](const Stand& stand, std::int64_t b, std::int64_t t, std::int64_t k) {
      const std::int64_t row = stand.token(t);
      if (stand.m == 0) return k <= row;
      return stand.position(b, k * stand.m) + stand.m <= stand.position(b, row) + 1;
    })(problem, scene);
    const Stand stand = stand_of(problem);
    Numbers valid = numbers_of(problem.in.at("valid"));
    for (std::int64_t b = 0; b < stand.batches; ++b)
      for (std::int64_t t = 0; t < stand.rows; ++t) {
        bool any = false;
        for (std::int64_t k = 0; k < stand.keys; ++k) any = any || valid({b, t, k}) != 0;
        for (std::int64_t k = 0; k < stand.keys && !any; ++k) valid({b, t, k}) = 1;
      }
    put(problem.in, "valid", valid, Dtype::boolean);
  };
}

Spoil all(std::vector<Spoil> spoils) {
  return [=](Result& result, const Scene& scene) {
    for (const Spoil& spoil : spoils) spoil(result, scene);
  };
}

Spoil output(const std::string& name, const SceneEdit& edit) { return edited(name, false, edit); }
Spoil gradient(const std::string& name, const SceneEdit& edit) { return edited(name, true, edit); }
Spoil output_times(const std::string& name, double factor) {
  return output(name,
                [=](Numbers& x, const Scene&) { x.each([=](double v) { return v * factor; }); });
}
Spoil gradient_times(const std::string& name, double factor) {
  return gradient(name,
                  [=](Numbers& x, const Scene&) { x.each([=](double v) { return v * factor; }); });
}
Spoil only_outputs(std::vector<std::string> names) { return only(names, false); }
Spoil only_gradients(std::vector<std::string> names) { return only(names, true); }
Spoil right_outputs(std::vector<std::string> names) {
  return [=](Result& result, const Scene& scene) {
    for (const std::string& name : names)
      set_output(result, name, numbers_of(*scene.correct.find(name)));
  };
}
void set_output(Result& result, const std::string& name, const Numbers& numbers) {
  for (Value& value : result.outputs) {
    if (value.name == name) write(value, numbers);
  }
}

}  // namespace plumbline::mutants
