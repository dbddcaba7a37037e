// Attention over a window and blocks, and the blocks themselves.
#include <algorithm>
#include <cmath>

#include "tests/mutants/sees.hpp"

namespace plumbline::mutants {
namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1;
const std::string selected = "csa_attention", all_blocks = "csa_attention, all blocks",
                  compress = "csa_compress", prior = "csa_compress, prior";

// Channels of lane A in the place of lane B's.
void exchange_lanes(Numbers& x) {
  const std::size_t axis = x.shape.size() - 1;
  const std::int64_t width = x.shape[axis] / 2;
  x.reorder(axis, [=](std::int64_t c) { return (c + width) % (2 * width); });
}

void zero(Numbers& x) {
  x.each([](double) { return 0; });
}

// Window keys and blocks under a softmax each, and the mean of both.
void two_softmaxes(Result& result, const Scene& scene) {
  Problem window = scene.problem, blocks = scene.problem;
  order([](const Stand&, std::int64_t, std::int64_t, std::int64_t) { return false; })(window,
                                                                                      scene);
  blocks.options["window"] = 0;
  const Numbers a =
      numbers_of(*scene.operation.evaluate(window, {.precision = Precision::f32}).find("output"));
  Numbers b =
      numbers_of(*scene.operation.evaluate(blocks, {.precision = Precision::f32}).find("output"));
  for (std::size_t i = 0; i < b.at.size(); ++i) b.at[i] = (a.at[i] + b.at[i]) / 2;
  set_output(result, "output", b);
}

// Blocks as if all tokens were one document; their rotation goes by the positions they have.
void pool_across_documents(Problem& problem, const Scene&) {
  if (!problem.in.contains("positions")) return;
  Numbers one = numbers_of(problem.in.at("positions"));
  zero(one);
  put(problem.in, "segment_ids", one, Dtype::i32);
  problem.options["boundary"] = "segments";
}

void positions_by_block(Problem& problem, const Scene&) {
  const Shape shape = problem.in.at("kv").shape;
  Numbers positions{{shape[0], shape[1]}, {}};
  for (std::int64_t i = 0; i < count_of(positions.shape); ++i)
    positions.at.push_back(static_cast<double>(i % shape[1]));
  if (problem.in.contains("positions")) positions = numbers_of(problem.in.at("positions"));
  Numbers segments = positions;
  zero(segments);
  if (problem.in.contains("segment_ids")) segments = numbers_of(problem.in.at("segment_ids"));
  const double m = problem.options.at("m");
  positions.each([=](double p) { return std::floor(p / m); });
  put(problem.in, "positions", positions, Dtype::i32);
  put(problem.in, "segment_ids", segments, Dtype::i32);
  problem.options["boundary"] = "segments";
}

}  // namespace

Mutants of_compressed_attention() {
  return {
      {"missing sink", selected, "the softmax leaves out exp(sink)", without({"sink"})},
      {"sink in base 2", selected, "a sink kept for exp2 is read as a natural logarithm",
       input("sink", [](Numbers& x) { x.each([](double v) { return v / ln2; }); })},
      {"window one short", selected, "the window does not count the current token",
       option("/window", 3)},
      {"window one long", selected, "s >= r - W in the place of s > r - W", option("/window", 5)},
      {"no window", selected, "only blocks are attended", option("/window", 0)},
      {"block seen early", all_blocks, "a block is visible one token before it is complete",
       order(blocks_until(1))},
      {"block seen late", all_blocks, "p/m blocks in the place of (p + 1)/m",
       order(blocks_until(-1))},
      {"documents leak", all_blocks, "packed documents are one document", documents_ignored()},
      {"window leaks", all_blocks, "the window reaches into the document before",
       [](Problem& problem, const Scene& scene) {
         order([](const Stand& stand, std::int64_t b, std::int64_t t, std::int64_t j) {
           bool one = true;
           for (std::int64_t s = j * stand.m; s < (j + 1) * stand.m; ++s)
             one = one && stand.segment(b, s) == stand.segment(b, stand.token(t));
           return one && blocks_until(0)(stand, b, t, j);
         })(problem, scene);
         problem.options["mask"]["documents"] = false;
       }},
      {"last block dropped", all_blocks, "blocks in chunks of 3: the ragged chunk is not looked at",
       last_keys_dropped(3)},
      {"selection ignored", selected, "every visible block is attended", without({"indices"})},
      {"-1 is block 0", selected, "an empty slot is clamped to a legal address",
       all({option("/duplicates", "set"),
            integers("indices",
                     [](Numbers& x) { x.each([](double i) { return std::max(i, 0.0); }); })})},
      {"blocks one off", selected, "block j is read where block j - 1 lies",
       input("compressed",
             [](Numbers& x) {
               x.reorder(1, [](std::int64_t j) { return std::max<std::int64_t>(j - 1, 0); });
             }),
       only_outputs({"output", "lse"})},
      {"two softmaxes", all_blocks, "window and blocks are normalised apart and averaged", nullptr,
       two_softmaxes},
      {"scale only in the window", selected, "blocks' logits are not scaled",
       input("compressed", [](Numbers& x) { x.each([](double v) { return v * 2; }); }),
       only_outputs({"lse"})},
      {"d_sink dropped", selected, "the gradient of the sink is not returned", nullptr,
       gradient_times("sink", 0)},
      {"d_compressed times 1.5", selected, "a factor that only one gradient has", nullptr,
       gradient_times("compressed", 1.5)},
      {"lost update of kv", selected, "an atomic addition is lost: the last row adds nothing",
       all({cotangent("output", [](Numbers& x) { x.fill(1, x.size(1) - 1, 0); }),
            cotangent("lse", [](Numbers& x) { x.fill(1, x.size(1) - 1, 0); })}),
       only_gradients({"kv", "compressed"})},
      // The compressor.
      {"lanes exchanged", compress, "lane A reads the columns of lane B",
       all({input("kv", exchange_lanes), input("gate", exchange_lanes)}),
       only_outputs({"compressed"})},
      {"bias forgotten", compress, "position_bias is not added to the gates",
       input("position_bias", zero), only_outputs({"compressed"})},
      {"gates ignored", compress, "tokens are averaged",
       all({input("gate", zero), input("position_bias", zero)}), only_outputs({"compressed"})},
      {"absent lane counts", compress,
       "the first block's lane A is zeros of weight exp(bias), not absent",
       [](Problem& problem, const Scene&) {
         const Shape kv = problem.in.at("kv").shape;
         Numbers none{{kv[0], problem.options.at("m").get<std::int64_t>(), kv[2]}, {}};
         none.at.assign(static_cast<std::size_t>(count_of(none.shape)), 0);
         put(problem.in, "prior_kv", none);
         put(problem.in, "prior_gate", none);
       },
       [](Result& result, const Scene& scene) {
         only_outputs({"compressed"})(result, scene);
         result.gradients = scene.correct.gradients;
       }},
      {"documents leak", compress, "a document's first block pools the block before it",
       pool_across_documents, only_outputs({"compressed"})},
      {"rotated by block number", compress, "block j turns by j, not by m j", positions_by_block,
       only_outputs({"compressed"})},
      {"not rotated", compress, "blocks carry no position", option("/rope", Json()),
       only_outputs({"compressed"})},
      {"not normalised", compress, "rms_norm is left out",
       all({option("/norm", false), without({"norm_weight"})}), only_outputs({"compressed"})},
      {"prior of another request", prior, "`prior_present` is not read: a stale block is pooled",
       without({"prior_present"}), only_outputs({"compressed"})},
      {"prior's bias twice", prior, "position_bias is already in the gates that were kept",
       [](Problem& problem, const Scene& scene) {
         const Numbers bias = numbers_of(problem.in.at("position_bias"));
         input("prior_gate", [&](Numbers& x) {
           for (std::size_t i = 0; i < x.at.size(); ++i) x.at[i] += bias.at[i % bias.at.size()];
         })(problem, scene);
       },
       only_outputs({"compressed"})},
  };
}

}  // namespace plumbline::mutants
