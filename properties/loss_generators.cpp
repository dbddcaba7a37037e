// properties/loss_generators.cpp: problems of the losses and of indexer_scores for properties of all operations.
#include "properties/loss_check.hpp"
#include "properties/problem_generators.hpp"

namespace plumbline::properties {
namespace {

using Int = std::int64_t;

ProblemGenerator losses(bool blocks) {
  return [blocks] {
    LossWish wish;
    wish.blocks = blocks;
    const LossCase loss = draw_loss_case(wish);
    return GeneratedProblem{loss.problem, loss.H, loss.K, loss.S, floor_of};
  };
}

GeneratedProblem scores() {
  const Int batch = support::pick(1, 3), rows = support::pick(0, 5), keys = support::pick(0, 7);
  const Int heads = support::pick(1, 5), width = support::pick(1, 4);
  const auto seed = static_cast<std::uint64_t>(support::pick(0, 1 << 20));
  const Contents contents =
      support::one_of<Contents>({Contents::dyadic, Contents::bits, Contents::integers});
  const auto fill = [&](const char* name, const Shape& shape) {
    return support::f64s(shape, support::Stream(seed, name).reals(count_of(shape), contents));
  };
  GeneratedProblem made;
  made.heads = heads, made.keys = keys;
  made.problem.options = {
      {"relu", !support::chance(30)},
      {"score_scale", support::one_of<std::string>({"heads_and_dim", "dim", "none"})}};
  support::put_in(made.problem, "q", fill("q", {batch, rows, heads, width}));
  support::put_in(made.problem, "k", fill("k", {batch, keys, width}));
  support::put_in(made.problem, "w", fill("w", {batch, rows, heads}));
  support::put_cot(made.problem, "scores", fill("cot", {batch, rows, keys}));
  return made;
}

const bool listed[] = {
    add_generator("csa_indexer_loss", losses(true)),
    add_generator("dsa_indexer_loss", losses(false)),
    add_generator("indexer_scores", scores),
};

}  // namespace
}  // namespace plumbline::properties
