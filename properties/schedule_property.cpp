// properties/schedule_property.cpp
//
// The one property of all operations: a schedule changes the order of work and the memory, never the function.
// Every registered operation that honours schedule keys is drawn from its generator (problem_generators.hpp) and run
// under a random schedule of exactly those keys: 90 digits in mp100, 2^-40 in f64, and not another number of outputs.
#include "properties/problem_generators.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/draw.hpp"

namespace plumbline::properties {
namespace {

using support::Agreement;
using support::pick;

Json random_schedule(const Operation& operation, const GeneratedProblem& drawn) {
  Json schedule = Json::object();
  for (const std::string& key : operation.honours) {
    if (!support::chance(75)) continue;
    if (key == "head_chunk") {
      schedule[key] = pick(1, drawn.heads + 1);
    } else if (key == "key_block") {
      schedule[key] = pick(1, std::max<std::int64_t>(4, drawn.keys / 2));
    } else if (key == "prefill" || key == "step") {
      schedule[key] = pick(1, std::max<std::int64_t>(1, drawn.tokens));
    } else {
      schedule[key] = support::chance(50);  // barrier, sliced, absorbed
    }
  }
  return schedule;
}

Array<mp100> exact_values(const Value& value) {
  Array<mp100> array(value.shape);
  if (value.kind == Kind::real)
    array.values = *static_cast<const std::vector<mp100>*>(value.exact.get());
  for (std::size_t i = 0; i < value.integers.size(); ++i) array.values[i] = value.integers[i];
  for (std::size_t i = 0; i < value.booleans.size(); ++i) array.values[i] = value.booleans[i];
  return array;
}
Array<f64> double_values(const Value& value) {
  Array<f64> array(value.shape);
  if (value.kind == Kind::real) array.values = value.high;
  for (std::size_t i = 0; i < value.integers.size(); ++i) array.values[i] = value.integers[i];
  for (std::size_t i = 0; i < value.booleans.size(); ++i) array.values[i] = value.booleans[i];
  return array;
}

template <class Read> Agreement compare(const std::vector<Value>& found,
                                        const std::vector<Value>& expected,
                                        const GeneratedProblem& drawn, Read read) {
  Agreement worst;
  if (found.size() != expected.size())
    worst.note(-support::all_digits, "another number of tensors");
  for (std::size_t i = 0; i < expected.size() && i < found.size(); ++i) {
    worst.note(support::agreement(read(found[i]), exact_values(expected[i]), expected[i].name,
                                  drawn.floor(expected[i].name)));
  }
  return worst;
}
void holds(const Agreement& agreement, double digits, const char* what) {
  RC_LOG() << what << ": " << agreement.digits << " digits; " << agreement.where << std::endl;
  RC_ASSERT(agreement.digits >= digits);
}

TEST(Schedules, NeverChangeTheFunction) {
  for (const Operation* operation : operations()) {
    if (operation->honours.empty()) continue;
    const auto generator = problem_generators().find(operation->name);
    if (generator == problem_generators().end()) {
      ADD_FAILURE() << operation->name
                    << " honours schedules, but properties/ has no generator for it: see "
                    << "properties/problem_generators.hpp";
      continue;
    }
    support::property(operation->name, [&](support::Distribution& d) {
      GeneratedProblem drawn = generator->second();
      drawn.problem.outputs = {"all"};
      Problem scheduled = drawn.problem;
      scheduled.schedule = random_schedule(*operation, drawn);
      RC_LOG() << operation->name << " schedule " << scheduled.schedule.dump() << std::endl;
      const std::int64_t chunk = scheduled.schedule.value("head_chunk", std::int64_t{0});
      const std::int64_t block = scheduled.schedule.value("key_block", std::int64_t{0});
      const bool chunks = std::any_of(
          operation->honours.begin(), operation->honours.end(),
          [](const std::string& key) { return key == "head_chunk" || key == "key_block"; });
      if (chunks)
        d.needs("ragged chunks", (chunk > 0 && drawn.heads > chunk && drawn.heads % chunk != 0) ||
                                     (block > 0 && drawn.keys > block && drawn.keys % block != 0));
      for (const std::string& key : operation->honours)
        d.notes(key, scheduled.schedule.contains(key));

      // Forward-only schedules (a server's steps) have no backward to compare.
      const bool backward = !operation->cotangents.empty() &&
                            !scheduled.schedule.contains("prefill") &&
                            !scheduled.schedule.contains("step");
      Evaluation how{.precision = Precision::mp100, .forward = true, .backward = backward};
      const Result expected = operation->evaluate(drawn.problem, how);
      const Result found = operation->evaluate(scheduled, how);
      how.precision = Precision::f64;
      const Result rounded = operation->evaluate(scheduled, how);
      holds(compare(found.outputs, expected.outputs, drawn, exact_values), 90, "mp100");
      holds(compare(found.gradients, expected.gradients, drawn, exact_values), 90,
            "mp100 gradients");
      holds(compare(rounded.outputs, expected.outputs, drawn, double_values), 12.04, "f64");
      holds(compare(rounded.gradients, expected.gradients, drawn, double_values), 12.04,
            "f64 gradients");
    });
  }
}

}  // namespace
}  // namespace plumbline::properties
