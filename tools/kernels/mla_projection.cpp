#include "device/mla_projection/launch.hpp"

#include <cmath>

#include "tools/kernels/turns.hpp"

namespace plumbline {
namespace {

float query_scale(const Json& options, std::int64_t width) {
  double scale = 1 / std::sqrt(static_cast<double>(width));
  const auto max = options.at("max_position").get<std::int64_t>(),
             original = options.at("original_max_position").get<std::int64_t>();
  if (max > 0 && original > 0 && max > original) {
    const auto factor = options.at("rope").at("yarn").at("factor").get<double>();
    const double mscale = 0.1 * options.at("mscale").get<double>() * std::log(factor) + 1;
    scale *= mscale * mscale;
  }
  return static_cast<float>(scale);
}

device::MlaProjection arguments_of(Bench& bench, const Problem& problem) {
  const Json options = operation("mla_projection").resolve(problem.options);
  const Tensors& in = problem.in;
  const StoredTensor& x = in.at("x");
  const bool direct = in.count("wq") > 0;
  device::MlaProjection args;
  args.type = type_of(problem);
  args.rows = x.size(0) * x.size(1), args.width = x.size(2);
  args.heads = in.at("wkv_b").size(1), args.kv_rank = in.at("wkv_b").size(0);
  args.q_rank = direct ? 0 : in.at("wq_b").size(0);
  args.nope = options.at("nope_dim").get<std::int64_t>();
  args.rope = options.at("rope_dim").get<std::int64_t>();
  args.value_width = options.at("v_dim").get<std::int64_t>();
  args.eps = options.at("eps").get<float>();
  args.scale = query_scale(options, args.nope + args.rope);
  args.sliced = problem.schedule.value("sliced", false);
  args.rotary =
      rotary_on(bench, options.at("rope"), args.rope, positions_of(problem, x.size(0), x.size(1)));
  const auto input = [&](const char* name) { return bench.input(or_none(in, name)); };
  args.x = input("x"), args.wq_a = input("wq_a"), args.q_norm = input("q_norm");
  args.wq_b = input(direct ? "wq" : "wq_b");
  args.wkv_a = input("wkv_a"), args.kv_norm = input("kv_norm"), args.wkv_b = input("wkv_b");
  args.bq_a = input("bq_a"), args.bq_b = input(direct ? "bq" : "bq_b");
  args.bkv_a = input("bkv_a"), args.bkv_b = input("bkv_b");
  return args;
}

void run(Bench& bench, const Problem& problem, bool backward) {
  const StoredTensor& x = problem.in.at("x");
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  device::MlaProjection args = arguments_of(bench, problem);
  const Shape key = {batch, tokens, args.heads, args.nope + args.rope};
  args.query = bench.result("out.query", key, x.dtype);
  args.key = bench.result("out.key", key, x.dtype);
  args.value = bench.result("out.value", {batch, tokens, args.heads, args.value_width}, x.dtype);
  if (args.wq_a)
    args.q_latent = bench.result("out.q_latent", {batch, tokens, args.q_rank}, x.dtype);
  args.kv_latent = bench.result("out.kv_latent", {batch, tokens, args.kv_rank}, x.dtype);
  args.k_pe = bench.result("out.k_pe", {batch, tokens, args.rope}, x.dtype);
  args.workspace =
      static_cast<float*>(bench.workspace("raw latents", device::mla_projection_workspace(args)));
  bench.start(PLUMBLINE_SIDES(mla_projection), args);
  if (!backward) return;
  device::MlaProjectionBackward back;
  back.of = args;
  const auto cotangent = [&](const char* name) { return bench.input(or_none(problem.cot, name)); };
  back.dquery = cotangent("query"), back.dkey = cotangent("key");
  back.dvalue = cotangent("value"), back.dq_latent = cotangent("q_latent");
  back.dkv_latent = cotangent("kv_latent"), back.dk_pe = cotangent("k_pe");
  const auto gradient = [&](const char* name) { return gradient_of(bench, problem, name); };
  const bool direct = !args.wq_a;
  back.dx = gradient("x"), back.dwq_a = gradient("wq_a"), back.dq_norm = gradient("q_norm");
  back.dwq_b = gradient(direct ? "wq" : "wq_b");
  back.dwkv_a = gradient("wkv_a"), back.dkv_norm = gradient("kv_norm");
  back.dwkv_b = gradient("wkv_b");
  back.dbq_a = gradient("bq_a"), back.dbq_b = gradient(direct ? "bq" : "bq_b");
  back.dbkv_a = gradient("bkv_a"), back.dbkv_b = gradient("bkv_b");
  back.workspace = static_cast<float*>(
      bench.workspace("workspace", device::mla_projection_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(mla_projection_backward), back);
}

}  // namespace

void add_mla_projection_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "mla_projection", kernel.name = "naive";
  kernel.refuses = refuses_dtypes;
  kernel.contract = [](const Problem& problem) {
    Json contract = Json::object();
    // The normed latents are stored before they are multiplied.
    if (type_of(problem) == device::Type::bf16) contract["rounding_points"]["norm_out"] = "bf16";
    return contract;
  };
  kernel.run = run;
  kernel.schedules = {Json::object(), {{"sliced", true}}};
  kernel.odd = entries({
      R"({"id": "ragged", "dims": {"B": 2, "S": 5, "E": 35, "H": 3, "Rq": 37, "Rkv": 33},
               "options": {"nope_dim": 5, "rope_dim": 6, "v_dim": 7, "eps": 1e-3,
                           "rope": {"theta": 1000, "dim": 6, "pairing": "half"}},
               "with": ["bq_a", "bq_b", "bkv_a", "bkv_b", "positions"], "grad": true})",
      R"({"id": "direct", "dims": {"B": 1, "S": 3, "E": 9, "H": 2, "Rkv": 4},
               "options": {"nope_dim": 4, "rope_dim": 2, "v_dim": 3,
                           "rope": {"theta": 10, "dim": 2, "output": "half"}},
               "with": ["wq", "bq", "bkv_b"], "without": ["wq_a", "q_norm", "wq_b", "bq_a", "bq_b"],
               "grad": true})",
      R"({"id": "yarn", "dims": {"B": 1, "S": 2, "E": 5, "H": 1, "Rq": 3, "Rkv": 2},
               "options": {"nope_dim": 1, "rope_dim": 4, "v_dim": 1, "mscale": 0.7,
                           "max_position": 256, "original_max_position": 64,
                           "rope": {"theta": 100, "dim": 4, "output": "half",
                                    "yarn": {"factor": 4, "original_max_position": 64,
                                             "beta_fast": 32, "beta_slow": 1}}},
               "family": "cancellation", "grad": true})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
