#include "device/csa_compress/launch.hpp"

#include "reference/csa_compress/options.hpp"
#include "reference/tensor/sizes.hpp"
#include "tools/kernels/turns.hpp"

namespace plumbline {
namespace {

// Where blocks lie: the registry's grid, as integers.
struct Grids {
  std::vector<std::int32_t> first, before, block_of;
  std::vector<std::int64_t> positions;  // of the first token of each block, B N
  std::int64_t blocks = 0;
};
Grids grids_of(const Problem& problem, const Json& options) {
  const StoredTensor& kv = problem.in.at("kv");
  const std::int64_t m = options.at("m").get<std::int64_t>(), batch = kv.size(0);
  MaskOptions mask;
  mask.causal = false;
  if (const Json& padding = options.at("mask").at("padding_segment"); !padding.is_null())
    mask.padding_segment = padding.get<std::int64_t>();
  MaskInputs inputs;
  inputs.positions = or_none(problem.in, "positions");
  inputs.segment_ids = or_none(problem.in, "segment_ids");
  inputs.cu_seqlens = or_none(problem.in, "cu_seqlens");
  Sizes sizes;
  sizes.set("B", batch, "in.kv");
  sizes.set("S", kv.size(1), "in.kv");
  const bool physical = options.at("grid") == "physical";
  const Visibility seen(mask, inputs, sizes, Blocks{m, physical ? Grid::physical : Grid::document});
  const bool by_position = physical && options.at("boundary") == "positions";
  const StoredTensor& present = or_none(problem.in, "prior_present");
  Grids grids;
  grids.blocks = seen.block_count();
  grids.block_of.assign(static_cast<std::size_t>(kv.size(1)), -1);
  for (std::int64_t j = 0; j < grids.blocks; ++j) {
    grids.first.push_back(static_cast<std::int32_t>(seen.block_first(j)));
    for (std::int64_t i = 0; i < m; ++i)
      grids.block_of[static_cast<std::size_t>(seen.block_first(j) + i)] =
          static_cast<std::int32_t>(j);
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t j = 0; j < grids.blocks; ++j) {
      const std::int64_t own = seen.block_first(j);
      device::Before stands = device::Before::nothing;
      if (options.at("overlap") == true && j == 0) {
        const bool prior =
            problem.in.count("prior_kv") > 0 && (!present.given() || boolean_at(present, {b}));
        if (prior) stands = device::Before::prior;
      } else if (options.at("overlap") == true) {
        const std::int64_t last = seen.block_first(j - 1);
        const bool follows = by_position ? seen.position(b, own) == seen.position(b, last) + m
                                         : seen.segment(b, own) == seen.segment(b, last);
        if (follows) stands = device::Before::block;
      }
      grids.before.push_back(static_cast<std::int32_t>(stands));
      grids.positions.push_back(seen.position(b, own));
    }
  }
  return grids;
}

device::CsaCompress arguments_of(Bench& bench, const Problem& problem, const Json& options) {
  const StoredTensor& kv = problem.in.at("kv");
  const Grids grids = grids_of(problem, options);
  device::CsaCompress args;
  args.type = type_of(problem);
  args.batch = kv.size(0), args.tokens = kv.size(1), args.blocks = grids.blocks;
  args.m = options.at("m").get<std::int64_t>();
  args.lanes = options.at("overlap") == true ? 2 : 1;
  args.width = kv.size(2) / args.lanes;
  args.norm = options.at("norm").get<bool>();
  args.eps = options.at("eps").get<float>();
  args.rests = options.at("grid") == "physical";
  if (!options.at("rope").is_null())
    args.rotary = rotary_on(bench, options.at("rope"), args.width, grids.positions);
  args.first = bench.table("first", grids.first);
  args.before = bench.table("before", grids.before);
  args.block_of = bench.table("block_of", grids.block_of);
  args.kv = bench.input(kv), args.gate = bench.input(problem.in.at("gate"));
  args.position_bias = bench.input(or_none(problem.in, "position_bias"));
  args.norm_weight = bench.input(or_none(problem.in, "norm_weight"));
  args.prior_kv = bench.input(or_none(problem.in, "prior_kv"));
  args.prior_gate = bench.input(or_none(problem.in, "prior_gate"));
  return args;
}

void results_of(Bench& bench, const Problem& problem, device::CsaCompress& args) {
  const Dtype dtype = problem.in.at("kv").dtype;
  args.compressed = bench.result("out.compressed", {args.batch, args.blocks, args.width}, dtype);
  args.workspace =
      static_cast<float*>(bench.workspace("pooled", device::csa_compress_workspace(args)));
  if (!args.rests) return;
  const Shape left = {args.batch, args.tokens - args.blocks * args.m, args.lanes * args.width};
  args.leftover_kv = bench.result("out.leftover_kv", left, dtype);
  args.leftover_gate = bench.result("out.leftover_gate", left, dtype);
  if (args.lanes == 1) return;
  const Shape block = {args.batch, args.m, 2 * args.width};
  args.next_kv = bench.result("out.prior_kv", block, dtype);
  args.next_gate = bench.result("out.prior_gate", block, dtype);
  // Whether there is a prior follows from sizes and flags; the host knows it.
  const StoredTensor& present = or_none(problem.in, "prior_present");
  std::vector<std::uint8_t> flags;
  for (std::int64_t b = 0; b < args.batch; ++b) {
    const bool given = args.prior_kv && (!present.given() || boolean_at(present, {b}));
    flags.push_back(args.blocks > 0 || given ? 1 : 0);
  }
  bench.known("out.prior_present", {args.batch}, flags);
}

void run(Bench& bench, const Problem& problem, bool backward) {
  const Json options = operation("csa_compress").resolve(problem.options);
  device::CsaCompress args = arguments_of(bench, problem, options);
  results_of(bench, problem, args);
  bench.start(PLUMBLINE_SIDES(csa_compress), args);
  if (!backward) return;
  device::CsaCompressBackward back;
  back.of = args;
  back.dcompressed = bench.input(or_none(problem.cot, "compressed"));
  back.dleftover_kv = bench.input(or_none(problem.cot, "leftover_kv"));
  back.dleftover_gate = bench.input(or_none(problem.cot, "leftover_gate"));
  back.dnext_kv = bench.input(or_none(problem.cot, "prior_kv"));
  back.dnext_gate = bench.input(or_none(problem.cot, "prior_gate"));
  const auto gradient = [&](const char* name) { return gradient_of(bench, problem, name); };
  back.dkv = gradient("kv"), back.dgate = gradient("gate");
  back.dposition_bias = gradient("position_bias"), back.dnorm_weight = gradient("norm_weight");
  back.dprior_kv = gradient("prior_kv"), back.dprior_gate = gradient("prior_gate");
  back.workspace = static_cast<float*>(
      bench.workspace("workspace", device::csa_compress_backward_workspace(back)));
  bench.start(PLUMBLINE_SIDES(csa_compress_backward), back);
}

}  // namespace

void add_csa_compress_kernels(std::vector<Kernel>& table) {
  Kernel kernel;
  kernel.op = "csa_compress", kernel.name = "naive";
  kernel.refuses = refuses_dtypes;
  kernel.contract = [](const Problem&) {
    return Json{{"ulp", {{"exp", 3}, {"exp2", 3}}}, {"flush_to_zero", true}};
  };
  kernel.run = run;
  kernel.odd = entries({
      R"({"id": "ragged", "dims": {"B": 2, "S": 23, "m": 4, "D": 37}, "grad": true,
               "options": {"rope": {"theta": 1000, "dim": 10, "pairing": "half"}}})",
      R"({"id": "peaked_segments", "dims": {"B": 1, "S": 19, "m": 2, "D": 6}, "grad": true,
               "family": "peaked+documents", "options": {"boundary": "segments"}})",
      R"({"id": "ascending", "dims": {"B": 1, "S": 9, "m": 4, "D": 5}, "grad": true,
               "family": "ascending", "with": ["prior_kv", "prior_gate"]})",
      R"({"id": "one_of_each", "dims": {"B": 1, "S": 1, "m": 1, "D": 1}, "grad": true})",
      R"({"id": "bare", "dims": {"B": 1, "S": 7, "m": 3, "D": 4}, "grad": true,
               "without": ["position_bias", "norm_weight"],
               "options": {"rope": {"theta": 100, "dim": 4, "output": "half"}}})",
  });
  table.push_back(std::move(kernel));
}

}  // namespace plumbline
