#include "device/linear/launch.hpp"
#include "tools/kernels/kernel.hpp"

namespace plumbline {
namespace {

device::Linear arguments_of(Bench& bench, const Problem& problem) {
  const StoredTensor &x = problem.in.at("x"), &weight = problem.in.at("weight");
  device::Linear args;
  args.type = type_of(problem);
  args.rows = x.size(0), args.inputs = x.size(1);
  args.groups = weight.size(1), args.width = weight.size(2);
  args.end = args.width;
  if (const auto slice = problem.options.find("slice_bounds");
      slice != problem.options.end() && !slice->is_null())
    args.begin = slice->at(0), args.end = slice->at(1);
  args.x = bench.input(x), args.weight = bench.input(weight);
  args.bias = bench.input(or_none(problem.in, "bias"));
  return args;
}

void run(Bench& bench, const Problem& problem, bool backward) {
  device::Linear args = arguments_of(bench, problem);
  const Dtype dtype = problem.in.at("x").dtype;
  args.y = bench.result("out.y", {args.rows, args.groups, args.end - args.begin}, dtype);
  bench.start(PLUMBLINE_SIDES(linear), args);
  if (!backward) return;
  device::LinearBackward back;
  back.of = args;
  back.dy = bench.input(problem.cot.at("y"));
  back.dx = bench.gradient("x", problem.in.at("x").shape);
  back.dweight = bench.gradient("weight", problem.in.at("weight").shape);
  back.dbias = gradient_of(bench, problem, "bias");
  back.workspace =
      static_cast<float*>(bench.workspace("workspace", device::linear_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(linear_backward), back);
}

}  // namespace

void add_linear_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "linear", kernel.name = "naive";
  kernel.refuses = refuses_dtypes;
  kernel.contract = [](const Problem&) { return Json::object(); };  // products and sums in f32
  kernel.run = run;
  kernel.odd = entries({
      R"({"id": "ragged_tiles", "dims": {"n": 67, "I": 71, "G": 3, "O": 29}, "grad": true})",
      R"({"id": "ragged_slice", "dims": {"n": 33, "I": 65, "G": 2, "O": 41},
               "options": {"slice_bounds": [7, 40]}, "family": "cancellation", "grad": true})",
      R"({"id": "one_of_each", "dims": {"n": 1, "I": 1, "G": 1, "O": 1}, "grad": true})",
      R"({"id": "many_rows", "dims": {"n": 300, "I": 2, "G": 1, "O": 3}, "grad": true})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
