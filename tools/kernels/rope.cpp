#include "device/rope/launch.hpp"
#include "tools/kernels/turns.hpp"

namespace plumbline {
namespace {

void run(Bench& bench, const Problem& problem, bool backward) {
  const StoredTensor& x = problem.in.at("x");
  device::Rope args;
  args.type = type_of(problem);
  args.tokens = x.size(0) * x.size(1), args.heads = x.size(2), args.width = x.size(3);
  args.rotary = rotary_on(bench, operation("rope").resolve(problem.options).at("rope"), x.size(3),
                          positions_of(problem, x.size(0), x.size(1)));
  args.x = bench.input(x);
  args.y = bench.result("out.y", x.shape, x.dtype);
  bench.start(PLUMBLINE_SIDES(rope), args);
  if (!backward) return;
  device::RopeBackward back;
  back.of = args;
  back.dy = bench.input(problem.cot.at("y"));
  back.dx = bench.gradient("x", x.shape);
  bench.start(PLUMBLINE_SIDES(rope_backward), back);
}

}  // namespace

void add_rope_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "rope", kernel.name = "naive";
  kernel.refuses = refuses_dtypes;
  kernel.contract = [](const Problem&) { return Json::object(); };
  kernel.run = run;
  kernel.odd = entries({
      R"({"id": "odd_rest", "dims": {"B": 2, "S": 5, "H": 3, "D": 11}, "grad": true,
               "options": {"rope": {"theta": 10000, "dim": 6}}})",
      R"({"id": "inverse_half", "dims": {"B": 1, "S": 3, "H": 2, "D": 7}, "grad": true,
               "with": ["positions"],
               "options": {"rope": {"theta": 500, "dim": 4, "output": "half", "inverse": true,
                                    "placement": "leading"}}})",
      R"({"id": "one_pair", "dims": {"B": 1, "S": 1, "H": 1, "D": 2}, "grad": true,
               "options": {"rope": {"theta": 10, "dim": 2}}})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
