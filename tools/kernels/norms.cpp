// rms_norm and layer_norm: x of any rank, the last axis normalised.
#include "device/layer_norm/launch.hpp"
#include "device/rms_norm/launch.hpp"
#include "tools/kernels/kernel.hpp"

namespace plumbline {
namespace {

// What both norms have.
template <class Norm> Norm arguments_of(Bench& bench, const Problem& problem) {
  const StoredTensor& x = problem.in.at("x");
  Norm args;
  args.type = type_of(problem);
  args.width = x.shape.back();
  args.rows = args.width > 0 ? count_of(x.shape) / args.width : 0;
  const Json options = operation("rms_norm").resolve(problem.options);  // both have eps alone
  args.eps = options.at("eps").get<float>();
  args.x = bench.input(x);
  args.weight = bench.input(or_none(problem.in, "weight"));
  args.y = bench.result("out.y", x.shape, x.dtype);
  return args;
}
template <class Back, class Norm>
Back backward_of(Bench& bench, const Problem& problem, const Norm& args) {
  Back back;
  back.of = args;
  back.dy = bench.input(problem.cot.at("y"));
  back.dx = bench.gradient("x", problem.in.at("x").shape);
  back.dweight = gradient_of(bench, problem, "weight");
  return back;
}

void run_rms_norm(Bench& bench, const Problem& problem, bool backward) {
  const auto args = arguments_of<device::RmsNorm>(bench, problem);
  bench.start(PLUMBLINE_SIDES(rms_norm), args);
  if (!backward) return;
  auto back = backward_of<device::RmsNormBackward>(bench, problem, args);
  back.workspace =
      static_cast<float*>(bench.workspace("workspace", device::rms_norm_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(rms_norm_backward), back);
}

void run_layer_norm(Bench& bench, const Problem& problem, bool backward) {
  auto args = arguments_of<device::LayerNorm>(bench, problem);
  args.bias = bench.input(or_none(problem.in, "bias"));
  bench.start(PLUMBLINE_SIDES(layer_norm), args);
  if (!backward) return;
  auto back = backward_of<device::LayerNormBackward>(bench, problem, args);
  back.dbias = gradient_of(bench, problem, "bias");
  back.workspace = static_cast<float*>(
      bench.workspace("workspace", device::layer_norm_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(layer_norm_backward), back);
}

std::string refuses(const Problem& problem) {
  if (const auto x = problem.in.find("x"); x != problem.in.end() && x->second.shape.back() < 1)
    return "normalises rows of at least one channel";
  return refuses_dtypes(problem);
}

}  // namespace

void add_norm_kernels(std::vector<Kernel>& table) {
  for (const bool layer : {false, true}) {
    Kernel kernel;
    kernel.op = layer ? "layer_norm" : "rms_norm", kernel.name = "naive";
    kernel.refuses = refuses;
    kernel.contract = [](const Problem&) { return Json::object(); };
    kernel.run = layer ? run_layer_norm : run_rms_norm;
    kernel.odd = entries({
        R"({"id": "ragged", "dims": {"n": 7, "D": 133}, "grad": true})",
        R"({"id": "cancelling", "dims": {"n": 5, "D": 45}, "family": "cancellation", "grad": true})",
        R"({"id": "one_channel", "dims": {"n": 3, "D": 1}, "grad": true})",
        R"({"id": "many_rows", "dims": {"n": 300, "D": 3}, "grad": true})",
        R"({"id": "few_values", "dims": {"n": 4, "D": 37}, "family": "ties", "grad": true})",
    });
    table.push_back(std::move(kernel));
  }
}

}  // namespace plumbline
