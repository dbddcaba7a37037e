#include "device/mla_attention/launch.hpp"

#include "tools/kernels/attention.hpp"

namespace plumbline {
namespace {

bool given(const Problem& problem, const char* name) { return or_none(problem.in, name).given(); }

std::int64_t value_width(const Problem& problem) {
  if (given(problem, "value")) return problem.in.at("value").size(3);
  return operation("mla_attention").resolve(problem.options).at("v_dim").get<std::int64_t>();
}

std::string refuses(const Problem& problem) {
  // An expanded key is a projection's output, and rounded as one; no contract of this operation says so.
  if (!given(problem, "key")) return "reads keys: a latent is expanded by linear";
  const std::int64_t widest = std::max(problem.in.at("key").size(3), value_width(problem));
  if (widest > (given(problem, "value") ? 256 : 576))
    return "has at most 256 channels, 576 where values are part of keys";
  return refuses_dtypes(problem);
}

void run(Bench& bench, const Problem& problem, bool backward) {
  const Operation& op = operation("mla_attention");
  const StoredTensor& key = problem.in.at("key");
  const bool apart = given(problem, "value");
  device::Attention args =
      attention_on(bench, problem, op.resolve(problem.options), *op.mask_view(problem));
  args.groups = key.size(2), args.value_width = value_width(problem);
  args.near = {key.size(1), bench.input(key), bench.input(or_none(problem.in, "value"))};
  args.far = args.near;
  attention_results(bench, args, problem, true);
  bench.start(PLUMBLINE_SIDES(mla_attention), args);
  if (!backward) return;
  device::AttentionBackward back = attention_back_on(bench, args, problem);
  back.dnear_key = back.dfar_key = bench.accumulator("grad.key", key.shape);
  if (apart)
    back.dnear_value = back.dfar_value =
        bench.accumulator("grad.value", problem.in.at("value").shape);
  back.workspace = static_cast<float*>(
      bench.workspace("workspace", device::mla_attention_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(mla_attention_backward), back);
}

}  // namespace

void add_mla_attention_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "mla_attention", kernel.name = "naive";
  kernel.deterministic = false;  // gradients of keys and values
  kernel.refuses = refuses;
  kernel.contract = attention_contract;
  kernel.run = run;
  kernel.odd = entries({
      R"({"id": "two_tiles", "dims": {"B": 2, "T": 2, "S": 70, "H": 34, "Hk": 2, "D": 20, "Dv": 9},
               "with": ["sink"], "grad": true})",
      R"({"id": "wide_values", "dims": {"B": 1, "T": 3, "H": 2, "Hk": 1, "D": 5, "Dv": 67},
               "options": {"lse_base": 2}, "grad": true})",
      R"({"id": "values_in_keys", "dims": {"B": 1, "T": 3, "S": 5, "H": 3, "Hk": 1, "D": 24}, "without": ["value"],
               "options": {"v_dim": 17}, "grad": true})",
      R"({"id": "absorbed_shape", "dims": {"B": 1, "T": 2, "S": 3, "H": 2, "Hk": 1, "D": 80}, "without": ["value"],
               "options": {"v_dim": 64}, "grad": true})",
      R"({"id": "slots", "dims": {"B": 1, "T": 3, "S": 60, "H": 2, "Hk": 2, "D": 6, "Dv": 4, "k": 41},
               "with": ["indices", "sink"], "options": {"lse_includes_sink": true}, "grad": true})",
      R"({"id": "selected_empty", "dims": {"B": 2, "T": 4, "S": 7, "H": 2, "Hk": 2, "D": 6, "Dv": 4},
               "with": ["selected", "sink"], "family": "empty_rows", "options": {"lse_includes_sink": true, "mask": {"causal": false}}, "grad": true})",
      R"({"id": "one_of_each", "dims": {"B": 1, "T": 1, "H": 1, "Hk": 1, "D": 1}, "grad": true})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
