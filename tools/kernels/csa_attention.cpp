#include "device/csa_attention/launch.hpp"

#include "tools/kernels/attention.hpp"

namespace plumbline {
namespace {

std::string refuses(const Problem& problem) {
  if (problem.in.at("query").size(3) > 512) return "has at most 512 channels";
  return refuses_dtypes(problem);
}

void run(Bench& bench, const Problem& problem, bool backward) {
  const Operation& op = operation("csa_attention");
  const StoredTensor &kv = problem.in.at("kv"), &compressed = problem.in.at("compressed");
  device::Attention args =
      attention_on(bench, problem, op.resolve(problem.options), *op.mask_view(problem));
  args.near = {kv.size(1), bench.input(kv), nullptr};
  args.far = {compressed.size(1), bench.input(compressed), nullptr};
  attention_results(bench, args, problem);
  bench.start(device::host::csa_attention, args);
  if (!backward) return;
  device::AttentionBackward back = attention_back_on(bench, args, problem);
  back.dnear_key = bench.accumulator("grad.kv", kv.shape);
  back.dfar_key = bench.accumulator("grad.compressed", compressed.shape);
  back.workspace = static_cast<float*>(
      bench.workspace("workspace", device::csa_attention_backward_workspace(back)));
  bench.start(device::host::csa_attention_backward, back);
}

}  // namespace

void add_csa_attention_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "csa_attention", kernel.name = "naive";
  kernel.deterministic = false;  // gradients of keys
  kernel.refuses = refuses;
  kernel.contract = attention_contract;
  kernel.run = run;
  for (
      const char* entry : {
          R"({"id": "two_tiles", "dims": {"B": 1, "T": 2, "S": 90, "H": 17, "D": 20, "m": 2, "W": 37, "k": 41},
               "grad": true})",
          R"({"id": "wide", "dims": {"B": 2, "T": 2, "H": 2, "D": 70, "m": 1, "W": 2, "k": 1}, "grad": true})",
          R"({"id": "infinite_sinks", "dims": {"B": 1, "T": 9, "H": 4, "D": 8, "m": 3, "W": 0, "k": 2},
               "family": "empty_rows", "options": {"lse_includes_sink": true}, "grad": true})",
          R"({"id": "one_of_each", "dims": {"B": 1, "T": 1, "H": 1, "D": 1, "m": 1, "W": 1, "k": 1}, "grad": true})",
      })
    kernel.odd.push_back(Json::parse(entry));
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
