// The bytes are a case. It is refused with an Error, or evaluated in f64, forwards and backwards. Cases that would
// merely take long are passed over: this target looks for faults, the clock is somebody else's.
#include <algorithm>
#include <limits>

#include "fixtures/case.hpp"
#include "tests/fuzz/fuzzing.hpp"

namespace plumbline {
namespace {

constexpr std::int64_t most_elements = 1024, largest_option = 256;
constexpr std::int64_t absurd = std::numeric_limits<std::int64_t>::max() / 2;

// Elements with axes of size 0 counted as 1: an empty tensor may still set the size of a result.
bool small(const Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements)) return false;
  }
  return elements <= most_elements;
}

// Small integers, and those so large that they must be refused; not what lies between and only takes memory.
bool small(const Json& json) {
  if (json.is_structured())
    return std::all_of(json.begin(), json.end(), [](const Json& each) { return small(each); });
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    return value <= static_cast<std::uint64_t>(largest_option) ||
           value >= static_cast<std::uint64_t>(absurd);
  }
  if (!json.is_number_integer()) return true;
  const auto value = json.get<std::int64_t>();
  return value >= -largest_option || value <= -absurd;
}

void check(const Value& value) {
  const auto count = static_cast<std::size_t>(count_of(value.shape));
  const std::size_t held = value.kind == Kind::real      ? value.high.size()
                           : value.kind == Kind::integer ? value.integers.size()
                                                         : value.booleans.size();
  if (held != count || (value.kind == Kind::real && value.low.size() != count))
    fuzz::broken("a value has the elements of its shape",
                 value.name + " " + to_string(value.shape));
}

void evaluate(const Operation& operation, const Problem& problem, bool backward) {
  Evaluation how;
  how.precision = Precision::f64;
  how.forward = !backward;
  how.backward = backward;
  const Result result = operation.evaluate(problem, how);
  for (const Value& value : result.outputs) check(value);
  for (const Value& value : result.gradients) check(value);
}

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plumbline;
  fuzz::answers([&] {
    SafetensorsFile file = SafetensorsFile::from_memory(fuzz::bytes_of(data, size), "f");
    for (const FileTensor& tensor : file.tensors()) {
      if (!small(tensor.shape)) return;
    }
    const Case loaded = load_case(std::move(file));
    if (!small(loaded.problem.options) || !small(loaded.problem.schedule)) return;
    const Operation& found = operation(loaded.op());
    fuzz::answers([&] { evaluate(found, loaded.problem, false); });
    fuzz::answers([&] { evaluate(found, loaded.problem, true); });
  });
  return 0;
}
