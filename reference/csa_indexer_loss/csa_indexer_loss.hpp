// reference/csa_indexer_loss/csa_indexer_loss.hpp
//
// KL(teacher ‖ indexer) over the compressed blocks of DeepSeek-V4's sparse attention; docs/ops/csa_indexer_loss.md.
// Guarantees, errors and source: reference/indexer_loss/loss.hpp, which this op gives blocks to.
#pragma once
#include "reference/indexer_loss/loss.hpp"

namespace plumbline::csa_indexer_loss {

struct Options : indexer_loss::Options {
  template <class Visitor> void fields(Visitor& v) {
    indexer_loss::Options::fields(v);
    v("window", window,
      "keys of the sliding window, the current token included; joint teachers need it");
    v("m", m, "tokens per block; required");
    v("grid", grid, "blocks are cut from token 0, or inside each document");
  }
};

struct Inputs : indexer_loss::Tensors {
  StoredTensor compressed;

  template <class Visitor> void fields(Visitor& v) {
    v.differentiable("scores", scores, "B T N|k", "student scores; or the three that make them:");
    v.differentiable("index_q", index_q, "B T A e", "indexer queries");
    v.differentiable("index_k", index_k, "B N e", "indexer keys, one per block");
    v.differentiable("index_w", index_w, "B T A", "indexer head weights");
    v.optional("query", query, "B T H D", "queries of the main attention, scaled");
    v.optional("compressed", compressed, "B N D", "compressed blocks, the teacher's keys");
    v.optional("kv", kv, "B S D", "window keys of a joint teacher");
    v.optional("sink", sink, "H", "sink logits of a joint teacher; may be infinite");
    v.booleans("selected", selected, "B T N", "selected blocks (sparse)");
    v.integers("indices", indices, "B T k", "selected blocks by number, -1 an empty slot (sparse)");
    v.given("log_mass", given_log_mass, "B T H", "ln Z of each head");
    v.given("head_sum", given_head_sum, "B T N|k", "T, summed over ranks");
    v.given("target", given_target, "B T N|k", "t");
    mask.fields(v, "N");
  }
};

struct Op {
  using Options = csa_indexer_loss::Options;
  using Inputs = csa_indexer_loss::Inputs;
  using Cotangents = indexer_loss::Cotangents;
  template <class T> using Outputs = indexer_loss::Outputs<T>;
  template <class T> using Gradients = indexer_loss::Gradients<T>;
  static constexpr std::string_view name = "csa_indexer_loss";
  static constexpr std::string_view summary =
      "KL of the indexer against the head-summed attention over compressed blocks";
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

}  // namespace plumbline::csa_indexer_loss
