// properties/csa_generators.cpp: problems of the operations of compressed sparse attention for properties of all
// operations.
#include "properties/csa_case.hpp"

namespace plumbline::properties {
namespace {

GeneratedProblem compress() {
  GeneratedProblem made;
  CompressCase c =
      draw_compress(support::chance(40) ? Arrangement::document_grid : Arrangement::any);
  made.tokens = c.S;
  const auto blocks = operation("csa_compress")
                          .evaluate(c.problem, {.precision = Precision::f64})
                          .find("compressed")
                          ->shape;
  support::put_cot(c.problem, "compressed", support::f64s(blocks, c.values("cot", blocks)));
  made.problem = std::move(c.problem);
  return made;
}

GeneratedProblem indexer() {
  GeneratedProblem made;
  const bool documents = support::chance(50);
  const std::int64_t B = documents ? 1 : support::pick(1, 2), S = support::pick(1, 11), E = 5,
                     A = support::pick(2, 5), e = support::pick(2, 3), m = support::pick(1, 3);
  const auto seed = static_cast<std::uint64_t>(support::pick(0, 1 << 20));
  const auto real = [&](const std::string& name, const Shape& shape) {
    support::put_in(
        made.problem, name,
        support::f64s(
            shape, support::Stream(seed, name).reals(count_of(shape), support::Contents::dyadic)));
  };
  made.heads = A, made.tokens = S;
  made.problem.options = {
      {"m", m}, {"k", support::pick(0, 4)}, {"rope", {{"theta", 100.0}, {"dim", 2}}}};
  real("x", {B, S, E}), real("q_latent", {B, S, 6}), real("q_proj", {6, A, e});
  real("kv_proj", {E, 2 * e}), real("gate_proj", {E, 2 * e}), real("position_bias", {m, 2 * e});
  real("kv_norm_weight", {e}), real("weights_proj", {E, A});
  if (documents) {
    const Documents drawn = draw_documents(S, true, std::nullopt);
    support::put_in(made.problem, "segment_ids", support::i32s({1, S}, drawn.segments));
    support::put_in(made.problem, "positions", support::i32s({1, S}, drawn.positions));
    if (support::chance(50)) made.problem.options["grid"] = "document";
  }
  Problem ask = made.problem;
  ask.outputs = {"scores"};
  const Shape shape =
      operation("csa_indexer").evaluate(ask, {.precision = Precision::f64}).find("scores")->shape;
  made.keys = shape[2];
  support::put_cot(
      made.problem, "scores",
      support::f64s(
          shape, support::Stream(seed, "cot").reals(count_of(shape), support::Contents::dyadic)));
  return made;
}

const bool listed[] = {add_generator("csa_compress", compress),
                       add_generator("csa_indexer", indexer)};

}  // namespace
}  // namespace plumbline::properties
