#include "device/csa_attention/launch.hpp"

#include "tools/kernels/attention.hpp"

namespace plumbline {
namespace {

std::string refuses(const Problem& problem) {
  if (problem.in.at("query").size(3) > 512) return "has at most 512 channels";
  return refuses_dtypes(problem);
}

device::Attention arguments_of(Bench& bench, const Problem& problem) {
  const Operation& op = operation("csa_attention");
  const StoredTensor &kv = problem.in.at("kv"), &compressed = problem.in.at("compressed");
  device::Attention args =
      attention_on(bench, problem, op.resolve(problem.options), *op.mask_view(problem));
  args.near = {kv.size(1), bench.input(kv), nullptr};
  args.far = {compressed.size(1), bench.input(compressed), nullptr};
  return args;
}

void run(Bench& bench, const Problem& problem, bool backward) {
  const StoredTensor &kv = problem.in.at("kv"), &compressed = problem.in.at("compressed");
  device::Attention args = arguments_of(bench, problem);
  attention_results(bench, args, problem, true);
  bench.start(PLUMBLINE_SIDES(csa_attention), args);
  if (!backward) return;
  device::AttentionBackward back = attention_back_on(bench, args, problem);
  back.dnear_key = bench.accumulator("grad.kv", kv.shape);
  back.dfar_key = bench.accumulator("grad.compressed", compressed.shape);
  back.workspace = static_cast<float*>(
      bench.workspace("workspace", device::csa_attention_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(csa_attention_backward), back);
}

std::string refuses_fast(const Problem& problem) {
  if (const std::string reason = refuses(problem); !reason.empty()) return reason;
  if (type_of(problem) != device::Type::bf16) return "reads BF16";
  const std::int64_t width = problem.in.at("query").size(3);
  return width % 8 == 0 ? "" : "has channels in multiples of 8, not " + std::to_string(width);
}

template <auto... Sides> void run_fast(Bench& bench, const Problem& problem, bool) {
  device::Attention args = arguments_of(bench, problem);
  attention_results(bench, args, problem, false);
  bench.start(Sides..., args);
}

// Forward only: the suite's families at widths that it takes.
template <auto... Sides> Kernel fast_kernel(std::string name) {
  Kernel kernel;
  kernel.op = "csa_attention", kernel.name = std::move(name);
  kernel.refuses = refuses_fast;
  kernel.contract = attention_contract;
  kernel.run = run_fast<Sides...>;
  kernel.odd = entries({
      R"({"id": "three_tiles", "dims": {"B": 1, "T": 2, "S": 90, "H": 17, "D": 24, "m": 2, "W": 37, "k": 41}})",
      R"({"id": "two_blocks_of_heads", "dims": {"B": 2, "T": 3, "H": 67, "D": 8, "m": 1, "W": 2, "k": 1}})",
      R"({"id": "many_tiles", "dims": {"B": 1, "T": 1, "S": 300, "H": 3, "D": 8, "m": 2, "W": 150, "k": 130}})",
      R"({"id": "steep", "dims": {"B": 1, "T": 1, "S": 300, "H": 3, "D": 8, "m": 3, "W": 160, "k": 2},
               "family": "ascending", "options": {"softmax_scale": 60}})",
      R"({"id": "v4", "dims": {"B": 1, "T": 1, "S": 70, "H": 64, "D": 512, "m": 4, "W": 48, "k": 3}})",
      R"({"id": "without_sink", "dims": {"B": 1, "T": 9, "H": 2, "D": 136, "m": 3, "W": 4}, "without": ["sink", "indices"]})",
      R"({"id": "documents", "dims": {"B": 1, "T": 17, "H": 3, "D": 16, "m": 3, "W": 4, "k": 2},
               "family": "documents", "options": {"grid": "document"}})",
      R"({"id": "empty_rows", "dims": {"B": 1, "T": 9, "H": 4, "D": 8, "m": 3, "W": 0, "k": 2},
               "family": "empty_rows", "options": {"lse_includes_sink": true}})",
      R"({"id": "base_2", "dims": {"B": 1, "T": 9, "H": 4, "D": 8, "m": 3, "W": 0, "k": 2},
               "family": "empty_rows", "options": {"lse_base": 2, "empty_lse": "+inf"}})",
      R"({"id": "peaked", "dims": {"B": 1, "T": 13, "H": 3, "D": 16, "m": 3, "W": 40, "k": 2}, "family": "peaked"})",
      R"({"id": "ascending", "dims": {"B": 1, "T": 2, "S": 90, "H": 3, "D": 16, "m": 3, "W": 80, "k": 2}, "family": "ascending"})",
      R"({"id": "poison", "dims": {"B": 1, "T": 13, "H": 3, "D": 16, "m": 3, "W": 4, "k": 2}, "family": "poison"})",
      R"({"id": "integers", "dims": {"B": 1, "T": 13, "H": 3, "D": 16, "m": 3, "W": 4, "k": 2}, "family": "integers"})",
  });
  return kernel;
}

}  // namespace

void add_csa_attention_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "csa_attention", kernel.name = "naive";
  kernel.deterministic = false;  // gradients of keys
  kernel.refuses = refuses;
  kernel.contract = attention_contract;
  kernel.run = run;
  kernel.odd = entries({
      R"({"id": "two_tiles", "dims": {"B": 1, "T": 2, "S": 90, "H": 17, "D": 20, "m": 2, "W": 37, "k": 41},
               "grad": true})",
      R"({"id": "wide", "dims": {"B": 2, "T": 2, "H": 2, "D": 70, "m": 1, "W": 2, "k": 1}, "grad": true})",
      R"({"id": "infinite_sinks", "dims": {"B": 1, "T": 9, "H": 4, "D": 8, "m": 3, "W": 0, "k": 2},
               "family": "empty_rows", "options": {"lse_includes_sink": true}, "grad": true})",
      R"({"id": "one_of_each", "dims": {"B": 1, "T": 1, "H": 1, "D": 1, "m": 1, "W": 1, "k": 1}, "grad": true})",
  });
  table.push_back(std::move(kernel));
  table.push_back(fast_kernel<PLUMBLINE_SIDES(csa_attention_fast)>("fast"));
  table.push_back(fast_kernel<PLUMBLINE_SIDES(csa_attention_fast90)>("fast90"));
}

}  // namespace plumbline
