// Projections, and the layer made of all parts.
#include <algorithm>
#include <cmath>

#include "tests/mutants/edits.hpp"

namespace plumbline::mutants {
namespace {

const std::string projection = "mla_projection", layer = "mla_layer";

// A gradient that is stopped leaks: a part of what the loss alone gives to `from` reaches `to`.
SceneEdit leak_of(const std::string& output, double part) {
  return [=](Numbers& x, const Scene& scene) {
    Problem only = scene.problem;
    for (auto& [name, cot] : only.cot) {
      Numbers none = numbers_of(cot);
      none.each([](double) { return 0; });
      if (name != output) put(only.cot, name, none);
    }
    Numbers g = numbers_of(*scene.correct.find("x", true));
    for (std::size_t i = 0; i < x.at.size(); ++i) x.at[i] += part * g.at[i % g.at.size()];
  };
}

Edit last_row_before() {
  return [](Numbers& x) { x.copy(1, x.size(1) - 2, x.size(1) - 1); };
}

}  // namespace

Mutants of_layers() {
  return {
      {"missing mscale", projection, "a longer context without its factor (0.1 ln f + 1)^2",
       option("/max_position", 0)},
      {"mscale once", projection, "0.1 ln f + 1 is not squared",
       nullptr,
       output("query",
              [](Numbers& x, const Scene&) {
                const double m = 0.1 * std::log(4.0) + 1;
                x.each([=](double v) { return v / m; });
              })},
      {"scale of the nope part", projection, "dn^-1/2 in the place of (dn + dr)^-1/2",
       nullptr, output_times("query", std::sqrt(7.0 / 3.0))},
      {"not YaRN", projection, "frequencies are those of the short context",
       all({option("/max_position", 0), option("/rope/yarn", Json())}), only_outputs({"key", "k_pe"})},
      {"pairs in halves", projection, "rotary channels are the two halves, not (2i, 2i + 1)",
       option("/rope/pairing", "half"), only_outputs({"query", "key", "k_pe"})},
      {"k_pe not rotated", projection, "only queries are rotated",
       option("/rope/theta", 100),
       [](Result& result, const Scene& scene) {
         Problem still = scene.problem;
         const Shape x = still.in.at("x").shape;
         Numbers zeros{{x[0], x[1]}, {}};
         zeros.at.assign(static_cast<std::size_t>(x[0] * x[1]), 0);
         put(still.in, "positions", zeros, Dtype::i32);
         const Result plain = scene.operation.evaluate(still, {.precision = Precision::f32});
         set_output(result, "k_pe", numbers_of(*plain.find("k_pe")));
         set_output(result, "key", numbers_of(*plain.find("key")));
       }},
      {"key and value exchanged", projection, "wkv_b is split into value and key",
       input("wkv_b",
             [](Numbers& x) { x.reorder(2, [](std::int64_t c) { return (c + 3) % 6; }); }),
       only_outputs({"key", "value"})},
      {"bias forgotten", projection, "bkv_b is not added", without({"bkv_b"}),
       only_outputs({"key", "value"})},
      {"norm's weight forgotten", projection, "kv_norm is not applied",
       input("kv_norm", [](Numbers& x) { x.each([](double) { return 1; }); }),
       only_outputs({"kv_latent", "key", "value"})},
      {"eps times 10", projection, "1e-5, the usual default, where the model has 1e-6",
       option("/eps", 1e-5)},
      {"leak into x", layer, "the loss reaches the residual stream through a tensor that should be detached",
       nullptr, gradient("x", leak_of("loss", 1e-3))},
      {"leak into the main weights", layer, "the loss reaches wkv_a", nullptr,
       gradient("wkv_a", leak_of("loss", 1e-3))},
      {"leak into the indexer", layer, "the output's gradient reaches an indexer weight",
       nullptr, gradient("indexer_wk", leak_of("output", 1e-3))},
      {"stale cache", layer, "the last token reads the latent of the token before",
       given("kv_latent", last_row_before()), only_outputs({"output"})},
      {"stale rotary cache", layer, "the last token reads the rotated key of the token before",
       given("k_pe", last_row_before()), only_outputs({"output"})},
      {"heads out of order", layer, "wo takes head 1 for head 0",
       input("wo", [](Numbers& x) { x.reorder(0, [](std::int64_t h) { return 1 - h; }); }),
       only_outputs({"output"})},
      {"loss over all rows", layer, "the loss is divided by another number of rows",
       option("/loss/reduction", "sum")},
      {"selection one off", layer, "attention and loss read the keys before those selected",
       [](Problem& problem, const Scene& scene) {
         Problem asking = scene.problem;
         Numbers keys = numbers_of(asking.given.at("indexer_indices"));
         keys.each([](double i) { return i > 0 ? i - 1 : i; });
         for (std::int64_t t = 0; t < keys.size(1); ++t)  // one key named twice is no selection
           for (std::int64_t k = 0; k < keys.size(2); ++k)
             for (std::int64_t j = 0; j < k; ++j)
               if (keys({0, t, k}) == keys({0, t, j})) keys({0, t, k}) = -1;
         put(problem.given, "indexer_indices", keys, Dtype::i32);
       },
       only_outputs({"output"})},
      {"selection not causal", layer, "the mask is not given to indexer and attention",
       option("/mask/causal", false), only_outputs({"output"})},
      {"no selection", layer, "k covers every key, so that nothing is selected against",
       [](Problem& problem, const Scene&) {
         problem.given.erase("indexer_indices");
         problem.options["indexer"]["k"] = 7;
         problem.options["loss"]["allow_full_selection"] = true;
       },
       only_outputs({"output"})},
  };
}

}  // namespace plumbline::mutants
