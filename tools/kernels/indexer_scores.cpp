#include "device/indexer_scores/launch.hpp"

#include <cmath>

#include "tools/kernels/kernel.hpp"

namespace plumbline {
namespace {

void run(Bench& bench, const Problem& problem, bool backward) {
  const StoredTensor &q = problem.in.at("q"), &k = problem.in.at("k");
  const Json options = operation("indexer_scores").resolve(problem.options);
  device::IndexerScores args;
  args.type = type_of(problem);
  args.batch = q.size(0), args.rows = q.size(1), args.heads = q.size(2), args.width = q.size(3);
  args.keys = k.size(1);
  const auto width = static_cast<double>(args.width), heads = static_cast<double>(args.heads);
  if (options.at("score_scale") == "dim") args.scale = static_cast<float>(1 / std::sqrt(width));
  if (options.at("score_scale") == "heads_and_dim")
    args.scale = static_cast<float>(1 / std::sqrt(width * heads));
  args.relu = options.at("relu").get<bool>();
  args.q = bench.input(q), args.k = bench.input(k), args.w = bench.input(problem.in.at("w"));
  args.scores = static_cast<float*>(
      bench.result("out.scores", {args.batch, args.rows, args.keys}, Dtype::f32));
  bench.start(PLUMBLINE_SIDES(indexer_scores), args);
  if (!backward) return;
  device::IndexerScoresBackward back;
  back.of = args;
  back.dscores = bench.input(problem.cot.at("scores"));
  back.dq = bench.gradient("q", q.shape);
  back.dk = bench.gradient("k", k.shape);
  back.dw = bench.gradient("w", problem.in.at("w").shape);
  bench.start(PLUMBLINE_SIDES(indexer_scores_backward), back);
}

}  // namespace

void add_indexer_scores_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "indexer_scores", kernel.name = "naive";
  kernel.refuses = refuses_dtypes;
  kernel.contract = [](const Problem&) { return Json::object(); };
  kernel.run = run;
  const char* const kink = "q.k is 0 to within its error: on which side of the ReLU is open";
  kernel.unprovable = {{"integers_exact", kink}, {"cancellation_f32", kink}};
  kernel.odd = entries({
      R"({"id": "ragged_tiles", "dims": {"B": 1, "T": 67, "K": 71, "A": 2, "e": 37}, "grad": true})",
      R"({"id": "wide", "dims": {"B": 2, "T": 3, "K": 5, "A": 2, "e": 70}, "grad": true,
               "family": "integers"})",
      R"({"id": "one_of_each", "dims": {"B": 1, "T": 1, "K": 1, "A": 1, "e": 1}, "grad": true})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
