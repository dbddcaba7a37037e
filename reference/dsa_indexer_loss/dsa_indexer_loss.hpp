// reference/dsa_indexer_loss/dsa_indexer_loss.hpp
//
// KL(teacher ‖ indexer) over the tokens of DeepSeek-V3.2's sparse attention; docs/ops/dsa_indexer_loss.md.
// Guarantees, errors and source: reference/indexer_loss/loss.hpp, which this op gives tokens to.
#pragma once
#include "reference/indexer_loss/loss.hpp"

namespace plumbline::dsa_indexer_loss {

using Options = indexer_loss::Options;

struct Inputs : indexer_loss::Tensors {
  template <class Visitor> void fields(Visitor& v) {
    v.differentiable("scores", scores, "B T S|k", "student scores; or the three that make them:");
    v.differentiable("index_q", index_q, "B T A e", "indexer queries");
    v.differentiable("index_k", index_k, "B S e", "indexer keys");
    v.differentiable("index_w", index_w, "B T A", "indexer head weights");
    v.optional("query", query, "B T H D", "queries of the main attention, scaled");
    v.optional("key", key, "B S Hk D",
               "keys of the main attention; head h uses key head floor(h Hk / H)");
    v.booleans("selected", selected, "B T S", "selected tokens (sparse)");
    v.integers("indices", indices, "B T k", "selected tokens by number, -1 an empty slot (sparse)");
    v.given("log_mass", given_log_mass, "B T H", "ln Z of each head");
    v.given("head_sum", given_head_sum, "B T S|k", "T, summed over ranks");
    v.given("target", given_target, "B T S|k", "t");
    mask.fields(v, "S");
  }
};

struct Op {
  using Options = dsa_indexer_loss::Options;
  using Inputs = dsa_indexer_loss::Inputs;
  using Cotangents = indexer_loss::Cotangents;
  template <class T> using Outputs = indexer_loss::Outputs<T>;
  template <class T> using Gradients = indexer_loss::Gradients<T>;
  static constexpr std::string_view name = "dsa_indexer_loss";
  static constexpr std::string_view summary =
      "KL of the indexer against the head-summed attention over tokens";
  static constexpr std::string_view formula =
      "loss = coefficient * reduction over rows of sum_s t (ln t - ln p),  t = l1(sum_h P_h),  p = "
      "softmax(scores)";
  static constexpr std::string_view honours[] = {"barrier", "head_chunk", "key_block"};
  static constexpr bool outputs_can_be_given = false;  // but for those that Inputs names
  static std::span<const indexer_loss::Preset> presets();
  static bool has_surrogate(const Options& options) {
    return options.gradient == indexer_loss::Gradient::p_minus_t;
  }
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::dsa_indexer_loss
