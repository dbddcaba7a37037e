// Indexers and selections.
#include <algorithm>
#include <cmath>

#include "tests/mutants/sees.hpp"

namespace plumbline::mutants {
namespace {

const std::string scores = "indexer_scores", narrow = "indexer_scores, one channel",
                  tokens = "topk", blocks = "topk, blocks", dsa = "dsa_indexer",
                  csa = "csa_indexer";

// Keys in the other direction, so that ties go to the highest index.
void mirror(Problem& problem, const Scene& scene) {
  order(tokens_until(0))(problem, scene);
  const auto turn = [](Numbers& x) {
    const std::int64_t keys = x.size(2);
    x.reorder(2, [=](std::int64_t i) { return keys - 1 - i; });
  };
  input("scores", turn)(problem, scene);
  Numbers valid = numbers_of(problem.in.at("valid"));
  // Documents go by key numbers, which no longer tell them.
  const Stand stand = stand_of(problem);
  for (std::int64_t b = 0; b < stand.batches; ++b)
    for (std::int64_t t = 0; t < stand.rows; ++t)
      for (std::int64_t s = 0; s < stand.keys; ++s)
        if (stand.segment(b, s) != stand.segment(b, stand.token(t))) valid({b, t, s}) = 0;
  turn(valid);
  put(problem.in, "valid", valid, Dtype::boolean);
  problem.options["mask"]["documents"] = false;
}
Spoil mirror_back() {
  return all({output("indices",
                     [](Numbers& x, const Scene& scene) {
                       const double keys =
                           static_cast<double>(scene.problem.in.at("scores").shape[2]);
                       x.each([=](double i) { return i < 0 ? -1 : keys - 1 - i; });
                     }),
              output("selected", [](Numbers& x, const Scene&) {
                const std::int64_t keys = x.size(2);
                x.reorder(2, [=](std::int64_t i) { return keys - 1 - i; });
              })});
}

double to_bf16(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

// d q through dots that are exactly 0, as if step(0) were 1.
void step_at_0_is_1(Numbers& dq, const Scene& scene) {
  const Numbers q = numbers_of(scene.problem.in.at("q")), k = numbers_of(scene.problem.in.at("k")),
                w = numbers_of(scene.problem.in.at("w")),
                g = numbers_of(scene.problem.cot.at("scores"));
  const double factor =
      1 / std::sqrt(static_cast<double>(q.size(2))) / std::sqrt(static_cast<double>(q.size(3)));
  for (std::int64_t b = 0; b < q.size(0); ++b)
    for (std::int64_t t = 0; t < q.size(1); ++t)
      for (std::int64_t a = 0; a < q.size(2); ++a)
        for (std::int64_t s = 0; s < k.size(1); ++s) {
          double dot = 0;
          for (std::int64_t e = 0; e < q.size(3); ++e) dot += q({b, t, a, e}) * k({b, s, e});
          for (std::int64_t e = 0; e < q.size(3) && dot == 0; ++e)
            dq({b, t, a, e}) += factor * g({b, t, s}) * w({b, t, a}) * k({b, s, e});
        }
}

// Every token at position 0; only what is not masked by positions may be looked at.
void without_positions(Problem& problem, const Scene&) {
  const Shape x = problem.in.at("x").shape;
  Numbers zeros{{x[0], x[1]}, {}};
  zeros.at.assign(static_cast<std::size_t>(x[0] * x[1]), 0);
  put(problem.in, "positions", zeros, Dtype::i32);
  if (!problem.in.contains("segment_ids")) put(problem.in, "segment_ids", zeros, Dtype::i32);
  problem.options["boundary"] = "segments";
  problem.options["mask"] = {{"documents", false}, {"causal", false}};
}

}  // namespace

Mutants of_selection() {
  return {
      // Scores.
      {"no ReLU", scores, "products are weighted as they are", option("/relu", false)},
      {"weights through a sigmoid", scores, "head weights are squashed, so none is negative",
       input("w", [](Numbers& x) { x.each([](double v) { return 1 / (1 + std::exp(-v)); }); })},
      {"mean over heads", scores, "divided by A in the place of A^1/2", nullptr,
       output_times("scores", 1 / std::sqrt(3.0))},
      {"scale forgotten", scores, "neither A^-1/2 nor e^-1/2", option("/score_scale", "none")},
      {"last channel dropped", scores, "e = 5 in chunks of 4: the ragged chunk is not summed",
       input("k", [](Numbers& x) { x.fill(2, 4, 0); }), only_outputs({"scores"})},
      {"last head dropped", scores, "A = 3 in chunks of 2: the ragged chunk is not summed",
       input("w", [](Numbers& x) { x.fill(2, 2, 0); }), only_outputs({"scores"})},
      {"ReLU steps at 0", narrow, "the derivative of the ReLU at 0 is 1", nullptr,
       gradient("q", step_at_0_is_1)},
      {"lost update of k", scores, "an atomic addition is lost: the last row adds nothing",
       cotangent("scores", [](Numbers& x) { x.fill(1, x.size(1) - 1, 0); }), only_gradients({"k"})},
      {"one key row from another", scores, "the third key's row is fetched from the second",
       input("k", [](Numbers& x) { x.copy(1, 1, 2); })},
      // Top-k.
      {"one too few", tokens, "k - 1 keys are selected", option("/k", 3),
       [](Result& result, const Scene& scene) {
         Numbers three = numbers_of(*result.find("indices")),
                 four = numbers_of(*scene.correct.find("indices"));
         four.fill(2, 3, -1);
         for (std::int64_t b = 0; b < three.size(0); ++b)
           for (std::int64_t t = 0; t < three.size(1); ++t)
             for (std::int64_t k = 0; k < 3; ++k) four({b, t, k}) = three({b, t, k});
         set_output(result, "indices", four);
       }},
      {"ties to the highest", tokens, "of equal scores the later key is taken", mirror,
       mirror_back()},
      {"scores in bf16", tokens, "scores are rounded before they are compared",
       input("scores", [](Numbers& x) { x.each(to_bf16); })},
      {"largest magnitude", tokens, "the comparison drops the sign",
       input("scores", [](Numbers& x) { x.each([](double v) { return std::fabs(v); }); })},
      {"next token selected", tokens, "s <= t + 1", order(tokens_until(1))},
      {"-1 is key 0", tokens, "unused slots name key 0", nullptr,
       output("indices",
              [](Numbers& x, const Scene&) { x.each([](double i) { return std::max(i, 0.0); }); })},
      {"documents leak", tokens, "packed documents are one document", documents_ignored()},
      {"block selected early", blocks, "one token before the block is complete",
       order(blocks_until(1))},
      {"block selected late", blocks, "p/m blocks in the place of (p + 1)/m",
       order(blocks_until(-1))},
      {"straddling block selected", blocks,
       "a block over a document's end belongs to the document of its last token",
       straddling_blocks_seen()},
      {"ties all selected", blocks, "every score of at least the k-th is taken",
       option("/tie", "threshold")},
      // Whole indexers.
      {"pairs interleaved", dsa, "rotary channels are (2i, 2i + 1), not the two halves",
       option("/rope/pairing", "interleaved")},
      {"rotated at the end", dsa,
       "nope comes first, as in attention, where the indexer has it last",
       option("/rope/placement", "trailing")},
      {"norm's bias forgotten", dsa, "the layer norm of the indexer's keys adds nothing",
       input("k_norm_bias", [](Numbers& x) { x.each([](double) { return 0; }); }),
       only_outputs({"index_k", "scores"})},
      {"eps times 10", dsa, "1e-5, the usual default, where the indexer has 1e-6",
       option("/eps", 1e-5)},
      {"not rotated", csa, "pooled keys and queries keep their positions to themselves",
       without_positions, only_outputs({"index_q", "index_k"})},
      {"bias of the block forgotten", csa, "position_bias is not added to the gates",
       input("position_bias", [](Numbers& x) { x.each([](double) { return 0; }); })},
      {"boundary forgotten", csa, "a document's first block pools the block before it",
       [](Problem& problem, const Scene&) {
         if (!problem.in.contains("segment_ids")) return;
         problem.options["boundary"] = "segments";
         const Numbers segments = numbers_of(problem.in.at("segment_ids"));
         Numbers one = segments;
         one.each([](double) { return 0; });
         put(problem.in, "segment_ids", one, Dtype::i32);
         problem.options["mask"] = {{"documents", false}, {"causal", false}};
       },
       only_outputs({"index_k"})},
  };
}

}  // namespace plumbline::mutants
