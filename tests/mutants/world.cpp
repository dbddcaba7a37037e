#include "tests/mutants/world.hpp"

#include <algorithm>

#include "fixtures/families.hpp"
#include "reference/error.hpp"
#include "reference/numeric/simulated.hpp"
#include "tests/bounds_testing.hpp"
#include "tests/mutants/edits.hpp"

namespace plumbline::mutants {
namespace {

// Precision of the format's numbers; results smaller than its normal numbers do not occur here.
double stored_in(double x, Format format) {
  if (!std::isfinite(x) || x == 0) return x;
  const FormatShape shape = shape_of(format);
  int exponent = 0;
  std::frexp(x, &exponent);
  const int last = std::max(exponent - shape.precision, shape.least_exponent - shape.precision + 1);
  return std::ldexp(std::nearbyint(std::ldexp(x, -last)), last);
}

}  // namespace

std::vector<std::string> default_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

std::unique_ptr<World> make_world(const Setting& setting, const std::string& family,
                                  std::uint64_t seed) {
  GenerateRequest asked = generate_request(parse_json(setting.request, setting.name), setting.name);
  asked.family = family;
  asked.seed = seed;
  asked.precision = Precision::f64;
  if (family == "subnormals") asked.dtype = Dtype::f32;
  auto world = std::make_unique<World>();
  try {
    world->problem = problem_of(generate(asked, 1));
  } catch (const Error&) {
    return nullptr;
  }
  world->operation = &operation(asked.op);
  world->grad = asked.grad;
  give_selection(*world->operation, world->problem);
  if (setting.prepare) setting.prepare(world->problem);
  world->bounded = bounds_of(*world, contract_named("ieee_f32"));
  world->correct = world->operation->evaluate(
      world->problem, {.precision = Precision::f32, .backward = world->grad});
  return world;
}

Result bounds_of(const World& world, const KernelContract& contract) {
  Evaluation how;
  how.contract = &contract;
  how.backward = world.grad;
  return world.operation->evaluate(world.problem, how);
}

Result execution_of(const World& world, const Contract& contract, std::uint64_t seed) {
  Evaluation how;
  how.contract = &contract;
  how.backward = world.grad;
  how.precision = Precision::simulated;
  this_execution() = {};
  this_execution().seed = seed;
  Result result = world.operation->evaluate(world.problem, how);
  this_execution() = {};
  for (auto* const list : {&result.outputs, &result.gradients})
    for (Value& value : *list)
      for (double& x : value.high) x = stored_in(x, contract.output);
  return result;
}

Result mutated(const World& world, const Mutant& mutant) {
  if (mutant.arithmetic) return execution_of(world, *mutant.arithmetic, 1);
  const Scene scene{*world.operation, world.problem, world.correct};
  Problem problem = world.problem;
  if (mutant.change) {
    mutant.change(problem, scene);
    problem.options["nonfinite"] = "allow";  // a kernel reads whatever it finds
  }
  Result result =
      world.operation->evaluate(problem, {.precision = Precision::f32, .backward = world.grad});
  if (mutant.spoil) mutant.spoil(result, scene);
  return result;
}

Cell cell_of(const World* world, const Mutant& mutant) {
  Cell cell;
  if (world == nullptr) return cell;
  try {
    const Result result = mutated(*world, mutant);
    cell.state = same(result, world->correct) ? Cell::State::same : Cell::State::differs;
    const KernelContract& f32 = contract_named("ieee_f32");
    cell.killed = killed_by(world->problem.options, world->bounded, result, f32);
    const Killed right = killed_by(world->problem.options, world->bounded, world->correct, f32);
    for (std::size_t rule = 0; rule < rules; ++rule)
      cell.killed[rule] = cell.killed[rule] && !right[rule];
  } catch (const Error& error) {
    cell.state = Cell::State::refused;
    cell.refusal = error.what();
  }
  return cell;
}

}  // namespace plumbline::mutants
