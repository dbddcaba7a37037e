// Every gradient of csa_layer against differences in mp100, of every kind, under several losses.
#include <gtest/gtest.h>

#include "gradcheck/gradcheck.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

StoredTensor values(const std::string& name, const Shape& shape) {
  return support::f64s(shape,
                       support::Stream(13, name).reals(count_of(shape), support::Contents::dyadic));
}

// Seven tokens, three heads in as many groups, blocks of two; two documents of which the second begins inside a block.
Problem layer(const std::string& kind, Json loss, bool documents) {
  Problem problem;
  const std::int64_t S = 7, E = 3, H = 2, D = 3, Rq = 2, G = 2, r = 2, m = 2, A = 2, e = 2;
  problem.options = {{"kind", kind}, {"window", 2}, {"rope", {{"theta", 100.0}, {"dim", 2}}}};
  problem.options["loss"] = std::move(loss);
  const auto real = [&](const std::string& name, const Shape& shape) {
    support::put_in(problem, name, values(name, shape));
  };
  real("x", {1, S, E}), real("wq_a", {E, Rq}), real("q_norm", {Rq}), real("wq_b", {Rq, H, D});
  real("wkv", {E, D}), real("kv_norm", {D}), real("sink", {H});
  real("o_a", {G, H * D / G, r}), real("o_b", {G * r, E});
  support::put_cot(problem, "output", values("cot.output", {1, S, E}));
  support::put_cot(problem, "loss", support::f64s({}, {0.75}));
  if (documents) {
    support::put_in(problem, "segment_ids", support::i32s({1, S}, {1, 1, 1, 2, 2, 2, 2}));
    support::put_in(problem, "positions", support::i32s({1, S}, {0, 1, 2, 0, 1, 2, 3}));
  }
  if (kind == "window") return problem;
  problem.options["m"] = m;
  const std::int64_t lanes = kind == "csa" ? 2 * D : D;
  real("kv_proj", {E, lanes}), real("gate_proj", {E, lanes}), real("position_bias", {m, lanes});
  real("compress_norm", {D});
  if (kind == "hca") return problem;
  problem.options["compress_rope"] = {{"theta", 30.0}, {"dim", 2}};
  problem.options["indexer"] = {{"k", 1}};
  real("indexer_q_proj", {Rq, A, e}), real("indexer_kv_proj", {E, 2 * e});
  real("indexer_gate_proj", {E, 2 * e}), real("indexer_position_bias", {m, 2 * e});
  real("indexer_kv_norm_weight", {e}), real("indexer_weights_proj", {E, A});
  return problem;
}

void expect_right(const Problem& problem) {
  const GradcheckReport report = gradcheck(operation("csa_layer"), problem);
  std::size_t differentiable = 0;
  for (const TensorInfo& info : operation("csa_layer").inputs)
    differentiable += info.differentiable && problem.in.contains(info.name) ? 1 : 0;
  EXPECT_EQ(report.inputs.size(), differentiable) << "every input";
  for (const GradcheckInput& input : report.inputs) {
    EXPECT_TRUE(input.pass()) << "grad." << input.name << ": " << input.digits << " digits, "
                              << input.share() << " % checked. " << input.failure;
    EXPECT_GE(input.digits, gradcheck_digits) << input.name;
    EXPECT_GE(input.share(), gradcheck_share) << input.name;
  }
}

// Own and joint teachers, gradients of the value and p − t, dense and sparse.
TEST(Gradcheck, CsaLayerUnderEveryKindOfLoss) {
  for (const auto& [preset, sparse] : {std::pair("maxtext_v4", false),
                                       {"tilelang", true},
                                       {"megatron_csa_eager", false},
                                       {"primus", true}}) {
    expect_right(
        layer("csa", {{"preset", preset}, {"sparse", sparse}, {"coefficient", 0.5}}, false));
  }
}
TEST(Gradcheck, CsaLayerOverDocuments) {
  expect_right(layer("csa", {{"preset", "exact"}, {"sparse", true}}, true));
  Problem grid = layer("csa", {{"preset", "veomni"}}, true);
  grid.options["grid"] = "document";
  expect_right(grid);
  Problem rows = layer("csa", {{"preset", "exact"}}, true);
  support::put_in(rows, "row_index", support::i32s({3}, {6, 2, 4}));
  support::put_cot(rows, "output", values("cot.output", {1, 3, 3}));
  expect_right(rows);
}
TEST(Gradcheck, CsaLayerOfOneLaneAndOfAWindow) {
  expect_right(layer("hca", nullptr, false));
  expect_right(layer("hca", nullptr, true));
  expect_right(layer("window", nullptr, true));
}
TEST(Gradcheck, CsaLayerOfTheSelectedBlocks) { expect_right(layer("csa", nullptr, false)); }

}  // namespace
}  // namespace plumbline
