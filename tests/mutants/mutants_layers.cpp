// Projections, and the layer made of all parts.
#include <algorithm>
#include <cmath>

#include "tests/mutants/edits.hpp"

namespace plumbline::mutants {
namespace {

const std::string projection = "mla_projection", layer = "mla_layer", compressed = "csa_layer",
                  layer_loss = "mla_layer, loss alone", compressed_loss = "csa_layer, loss alone";

// A thousandth of another gradient where nothing of it should arrive.
SceneEdit leak_of(const std::string& name) {
  return [=](Numbers& x, const Scene& scene) {
    const Numbers g = numbers_of(*scene.correct.find(name, true));
    for (std::size_t i = 0; i < x.at.size(); ++i) x.at[i] += g.at[i % g.at.size()] / 1000;
  };
}

// Rotated once more, so that the layer's inverse rotation leaves the output as attention gave it.
void rotate_once_more(Problem& problem, const Scene& scene) {
  Problem asking = scene.problem, turning;
  asking.outputs = {"attention_output"};
  const Result made = scene.operation.evaluate(asking, {.precision = Precision::f32});
  put(turning.in, "x", numbers_of(*made.find("attention_output")));
  if (problem.in.contains("positions")) turning.in["positions"] = problem.in.at("positions");
  turning.options["rope"] = problem.options.at("rope");
  const Result turned = operation("rope").evaluate(turning, {.precision = Precision::f32});
  put(problem.given, "attention_output", numbers_of(*turned.find("y")));
}

Edit last_row_before() {
  return [](Numbers& x) { x.copy(1, x.size(1) - 2, x.size(1) - 1); };
}

}  // namespace

Mutants of_layers() {
  return {
      {"missing mscale", projection, "a longer context without its factor (0.1 ln f + 1)^2",
       option("/max_position", 0)},
      {"mscale once", projection, "0.1 ln f + 1 is not squared", nullptr,
       output("query",
              [](Numbers& x, const Scene&) {
                const double m = 0.1 * std::log(4.0) + 1;
                x.each([=](double v) { return v / m; });
              })},
      {"scale of the nope part", projection, "dn^-1/2 in the place of (dn + dr)^-1/2", nullptr,
       output_times("query", std::sqrt(7.0 / 3.0))},
      {"not YaRN", projection, "frequencies are those of the short context",
       all({option("/max_position", 0), option("/rope/yarn", Json())}),
       only_outputs({"key", "k_pe"})},
      {"pairs in halves", projection, "rotary channels are the two halves, not (2i, 2i + 1)",
       option("/rope/pairing", "half"), only_outputs({"query", "key", "k_pe"})},
      {"k_pe not rotated", projection, "only queries are rotated", option("/rope/theta", 100),
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
       input("wkv_b", [](Numbers& x) { x.reorder(2, [](std::int64_t c) { return (c + 3) % 6; }); }),
       only_outputs({"key", "value"})},
      {"bias forgotten", projection, "bkv_b is not added", without({"bkv_b"}),
       only_outputs({"key", "value"})},
      {"norm's weight forgotten", projection, "kv_norm is not applied",
       input("kv_norm", [](Numbers& x) { x.each([](double) { return 1; }); }),
       only_outputs({"kv_latent", "key", "value"})},
      {"eps times 10", projection, "1e-5, the usual default, where the model has 1e-6",
       option("/eps", 1e-5)},
      {"leak into x", layer_loss,
       "the loss reaches the residual stream through a tensor that should be detached", nullptr,
       gradient("x", leak_of("indexer_wk"))},
      {"leak into the main weights", layer_loss, "the loss reaches wkv_a", nullptr,
       gradient("wkv_a", leak_of("indexer_wk"))},
      {"leak into the indexer", layer, "the output's gradient reaches an indexer weight", nullptr,
       gradient("indexer_wk", leak_of("wo"))},
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
       [](Problem& problem, const Scene&) {
         problem.given.erase("indexer_indices");
         problem.options["mask"]["causal"] = false;
       },
       only_outputs({"output"})},
      {"no selection", layer, "k covers every key, so that nothing is selected against",
       [](Problem& problem, const Scene&) {
         problem.given.erase("indexer_indices");
         problem.options["indexer"]["k"] = 7;
         problem.options["loss"]["allow_full_selection"] = true;
       },
       only_outputs({"output"})},
      {"leak into x", compressed_loss,
       "the loss reaches the residual stream through a tensor that should be detached", nullptr,
       gradient("x", leak_of("indexer_q_proj"))},
      {"leak into the compressor", compressed_loss,
       "the loss reaches gate_proj of the main compressor", nullptr,
       gradient("gate_proj", leak_of("indexer_gate_proj"))},
      {"stale window", compressed, "the last token reads the window key of the token before",
       given("kv", last_row_before()), only_outputs({"output"})},
      {"output not turned back", compressed, "the inverse rotation of the output is left out",
       rotate_once_more, only_outputs({"output"})},
      {"one base for both rotations", compressed, "blocks are rotated with the window's theta",
       option("/compress_rope/theta", 100), only_outputs({"output"})},
      {"window one long", compressed, "s >= r - W in the place of s > r - W", option("/window", 4),
       only_outputs({"output"})},
      {"layer without its sink", compressed, "the back end silently drops sinks", without({"sink"}),
       only_outputs({"output"})},
      {"groups exchanged", compressed, "o_a of the other group of heads",
       input("o_a", [](Numbers& x) { x.reorder(0, [](std::int64_t g) { return 1 - g; }); }),
       only_outputs({"output"})},
      {"own teacher", compressed, "the layer's loss leaves window and sink out of the teacher",
       option("/loss/teacher", "own")},
  };
}

}  // namespace plumbline::mutants
