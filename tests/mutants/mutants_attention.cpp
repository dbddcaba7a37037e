// Attention over tokens, and over parts of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/mutants/sees.hpp"

namespace plumbline::mutants {
namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1;
const std::string all_keys = "mla_attention", indices = "mla_attention, indices",
                  last_rows = "mla_attention, last rows", merge = "merge_attention";

Edit times(double factor) {
  return [=](Numbers& x) { x.each([=](double v) { return v * factor; }); };
}

// An online softmax of one key at a time in f32 that never rescales its sums: each term stands under the maximum so
// far, the total under the last.
void without_rescaling(Numbers& o, const Scene& scene) {
  const Problem& p = scene.problem;
  const Numbers q = numbers_of(p.in.at("query")), k = numbers_of(p.in.at("key")),
                v = numbers_of(p.in.at("value")), sink = numbers_of(p.in.at("sink"));
  const Stand stand = stand_of(p);
  const double scale = p.options.at("softmax_scale");
  const bool arranged = p.in.contains("valid") || p.in.contains("row_mask");
  if (arranged) return;  // the order of the keys is what matters here
  const std::int64_t heads = q.size(2), share = heads / k.size(2);
  for (std::int64_t b = 0; b < stand.batches; ++b)
    for (std::int64_t t = 0; t < stand.rows; ++t)
      for (std::int64_t h = 0; h < heads; ++h) {
        double top = sink({h}), total = 1;
        std::vector<double> sum(static_cast<std::size_t>(v.size(3)), 0);
        for (std::int64_t s = 0; s <= stand.token(t); ++s) {
          if (stand.segment(b, s) != stand.segment(b, stand.token(t))) continue;
          double c = 0;
          for (std::int64_t d = 0; d < q.size(3); ++d)
            c += q({b, t, h, d}) * k({b, s, h / share, d});
          top = std::max(top, scale * c);
          const double weight = std::exp(scale * c - top);
          total += weight;
          for (std::int64_t d = 0; d < v.size(3); ++d)
            sum[static_cast<std::size_t>(d)] += weight * v({b, s, h / share, d});
        }
        for (std::int64_t d = 0; d < v.size(3); ++d)
          o({b, t, h, d}) = sum[static_cast<std::size_t>(d)] / total;
      }
}

void empty_slots_are_key_0(Numbers& x) {
  x.each([](double i) { return std::max(i, 0.0); });
}

}  // namespace

Mutants of_attention() {
  return {
      // The sink.
      {"missing sink", all_keys, "the back end silently drops sinks", without({"sink"})},
      {"sink scaled", all_keys, "the sink is multiplied by softmax_scale",
       input("sink", times(0.5))},
      {"sink in base 2", all_keys, "a sink kept for exp2 is read as a natural logarithm",
       input("sink", times(1 / ln2))},
      {"lse without the sink", all_keys, "the saved lse does not count the sink that it should",
       option("/lse_includes_sink", false), only_outputs({"lse"})},
      {"sink counted in lse", last_rows, "the saved lse counts a sink that it should not",
       option("/lse_includes_sink", true), only_outputs({"lse"})},
      {"d_sink dropped", all_keys, "the gradient of the sink is computed and not returned", nullptr,
       gradient_times("sink", 0)},
      {"d_sink's sign", all_keys, "p_sink times delta without its minus", nullptr,
       gradient_times("sink", -1)},
      {"d_sink without lse", all_keys, "what comes through lse does not reach the sink",
       cotangent("lse", times(0)), only_gradients({"sink"})},
      // lse.
      {"lse in base 2", all_keys, "log2 of the sum where the natural logarithm is meant",
       option("/lse_base", 2)},
      {"backward reads lse in base 2", all_keys, "the forward's lse is in the other base",
       given("lse", times(1 / ln2)), only_gradients({"query", "key", "value", "sink"})},
      {"stale lse", all_keys, "the backward pass reads the lse of the row before",
       given("lse",
             [](Numbers& x) {
               const std::int64_t rows = x.size(1);
               x.reorder(1, [=](std::int64_t t) { return t > 0 ? t - 1 : rows - 1; });
             }),
       only_gradients({"query", "key", "value", "sink"})},
      {"max_logit scaled", all_keys, "the largest logit in units of log2", nullptr,
       output_times("max_logit", 1 / ln2)},
      {"empty lse +inf", all_keys, "an empty row's lse has the other sign",
       option("/empty_lse", "+inf")},
      // Logits and weights.
      {"scale forgotten", all_keys, "softmax_scale is not applied", option("/softmax_scale", 1)},
      {"scale times 1.002", all_keys, "a scale that was rounded: 0.2 % off",
       option("/softmax_scale", 0.501)},
      {"exp2 without log2(e)", all_keys, "2^c in the place of e^c",
       option("/softmax_scale", 0.5 * ln2), only_outputs({"output"})},
      {"no rescaling", all_keys, "an online softmax keeps old sums when its maximum rises", nullptr,
       output("output", without_rescaling)},
      {"heads on wrong keys", all_keys,
       "head h reads key head h mod Hk in the place of floor(h Hk / H)",
       [](Problem& problem, const Scene& scene) {
         input("query", [](Numbers& x) {
           x.reorder(2, [](std::int64_t h) { return h == 1 ? 2 : h == 2 ? 1 : h; });
         })(problem, scene);
       },
       all({output("output",
                   [](Numbers& x, const Scene&) {
                     x.reorder(2, [](std::int64_t h) { return h == 1 ? 2 : h == 2 ? 1 : h; });
                   }),
            only_outputs({"output"})})},
      // Keys and values.
      {"one wrong value row", all_keys, "the third value is fetched from the second",
       input("value", [](Numbers& x) { x.copy(1, 1, 2); }), only_outputs({"output"})},
      {"stale cache", all_keys, "the last token attends before its key and value are stored",
       all({input("key", [](Numbers& x) { x.copy(1, x.size(1) - 2, x.size(1) - 1); }),
            input("value", [](Numbers& x) { x.copy(1, x.size(1) - 2, x.size(1) - 1); })}),
       only_outputs({"output", "lse"})},
      {"last keys dropped", all_keys, "keys in chunks of 4: the ragged chunk is not looked at",
       last_keys_dropped(4)},
      {"last channels dropped", all_keys,
       "Dv = 5 in chunks of 4: the ragged chunk is never written", nullptr,
       output("output", [](Numbers& x, const Scene&) { x.fill(3, 4, 0); })},
      {"diagonal hidden", all_keys, "s < t in the place of s <= t", order(tokens_until(-1))},
      {"next token seen", all_keys, "s <= t + 1", order(tokens_until(1))},
      {"rows stand at the front", last_rows, "row t stands at token t, not at t + S - T",
       option("/mask/query_offset", 0)},
      {"documents leak", all_keys, "packed documents are one document", documents_ignored()},
      {"mask ignored", all_keys, "`valid` is not read", without({"valid"})},
      {"empty rows uniform", last_rows,
       "a row whose keys are all masked by a large negative number sees all of them",
       empty_rows_see_all()},
      {"-1 is key 0", indices, "an empty slot is clamped to a legal address",
       all({option("/duplicates", "set"), integers("indices", empty_slots_are_key_0)})},
      {"duplicates counted twice", indices, "a key named twice has twice its weight",
       option("/duplicates", "multiset")},
      {"selection ignored", indices, "every visible key is attended", without({"indices"})},
      // The backward pass.
      {"no delta", all_keys, "dc = p cot.v, without - cot.output", given("output", times(0)),
       only_gradients({"query", "key"})},
      {"gradient times 1.5", all_keys, "a factor that only the backward pass has", nullptr,
       gradient_times("query", 1.5)},
      {"d_key without its scale", all_keys, "softmax_scale is in dq and not in dk", nullptr,
       gradient_times("key", 2)},
      {"lost update", all_keys,
       "an atomic addition is lost: the last row adds nothing to keys and values",
       all({cotangent("output", [](Numbers& x) { x.fill(1, x.size(1) - 1, 0); }),
            cotangent("lse", [](Numbers& x) { x.fill(1, x.size(1) - 1, 0); })}),
       only_gradients({"key", "value"})},
      {"lse has no gradient", all_keys, "the cotangent of lse is not read",
       cotangent("lse", times(0)), only_gradients({"query", "key"})},
      {"NaN of a dead row", last_rows, "an empty row's 0 times NaN spreads to every key's gradient",
       nullptr,
       gradient("key",
                [](Numbers& x, const Scene& scene) {
                  const Numbers lse = numbers_of(*scene.correct.find("lse"));
                  for (const double l : lse.at) {
                    if (std::isinf(l))
                      x.each([](double) { return std::numeric_limits<double>::quiet_NaN(); });
                  }
                })},
      // Parts put together.
      {"last part dropped", merge, "P = 3 parts in pairs: the ragged one is not merged",
       input("lse", [](Numbers& x) { x.fill(0, 2, -std::numeric_limits<double>::infinity()); }),
       only_outputs({"output", "lse"})},
      {"parts in base 2", merge, "lse of a base-2 kernel merged as natural logarithms",
       option("/lse_base", 2)},
      {"parts averaged", merge, "every part has the same weight",
       input("lse", [](Numbers& x) { x.each([](double v) { return std::isfinite(v) ? 0 : v; }); }),
       only_outputs({"output"})},
      {"merged without the sink", merge, "no part counts the sink, nor does the whole",
       without({"sink"})},
      {"sink in every part", merge, "each part counted the sink, and so it counts P times",
       input("sink", [](Numbers& x) { x.each([](double v) { return v + std::log(3.0); }); })},
      {"parts in each other's place", merge, "outputs of the first two parts are exchanged",
       input("outputs",
             [](Numbers& x) { x.reorder(0, [](std::int64_t p) { return p < 2 ? 1 - p : p; }); })},
  };
}

}  // namespace plumbline::mutants
