#include "device/topk/launch.hpp"

#include "reference/mask/mask.hpp"
#include "tools/kernels/kernel.hpp"

namespace plumbline {
namespace {

void run(Bench& bench, const Problem& problem, bool) {
  const StoredTensor& scores = problem.in.at("scores");
  const Json options = operation("topk").resolve(problem.options);
  const std::int64_t batch = scores.size(0), rows = scores.size(1), keys = scores.size(2);
  device::TopK args;
  args.type = type_of(problem);
  args.rows = batch * rows, args.keys = keys;
  args.k = options.at("k").get<std::int64_t>();
  args.threshold = options.at("tie") == "threshold";
  args.scores = bench.input(scores);
  const auto view = operation("topk").mask_view(problem);
  std::vector<unsigned char> visible(static_cast<std::size_t>(batch * rows * keys), 0);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < rows; ++t) {
      for (const std::int64_t key : view->visibility.keys(b, t))
        visible[static_cast<std::size_t>((b * rows + t) * keys + key)] = 1;
    }
  }
  args.visible = bench.table("visible", visible);
  args.indices =
      static_cast<std::int32_t*>(bench.result("out.indices", {batch, rows, args.k}, Dtype::i32));
  args.selected =
      static_cast<std::int32_t*>(bench.result("out.selected", scores.shape, Dtype::i32));
  args.workspace = bench.workspace("workspace", device::topk_workspace(args));
  bench.start(PLUMBLINE_SIDES(topk), args);
}

}  // namespace

void add_topk_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "topk", kernel.name = "naive";
  kernel.refuses = refuses_dtypes;
  kernel.contract = [](const Problem&) {
    return Json{{"selection", {{"order", "best_first"}, {"tie", "lowest_index"}}}};
  };
  kernel.run = run;
  kernel.odd = entries({
      R"({"id": "three_stretches", "dims": {"B": 1, "T": 2, "S": 611, "k": 300},
               "family": "ties", "options": {"mask": {"causal": false}}})",
      R"({"id": "near_equal_stretches", "dims": {"B": 1, "T": 2, "S": 300, "k": 70},
               "family": "near_equal", "options": {"mask": {"causal": false}}})",
      R"({"id": "k_beyond_keys", "dims": {"B": 1, "T": 3, "S": 3, "k": 40}})",
      R"({"id": "k_0", "dims": {"B": 1, "T": 3, "S": 5, "k": 0}})",
      R"({"id": "one_of_each", "dims": {"B": 1, "T": 1, "S": 1, "k": 1}})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
