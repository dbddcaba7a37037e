// reference/csa_attention/csa_attention.hpp
//
// The attention of DeepSeek-V4: one softmax over the last tokens, the selected compressed blocks before them and a
// sink, all heads sharing one latent that is key and value; docs/ops/csa_attention.md.
// Guarantees: value and gradient in T; a token outside every window and a block that no row attends to are never
// read; a row without keys has output 0; nothing of size [T, S] or [T, N] is held.
// Schedules: head_chunk and key_block bound the numbers a row holds; neither changes the function. The backward pass
// computes probabilities again from lse, or from given.lse.
// Errors: m or window missing, m < 1, window < 0, a number of blocks other than the grid's, selected beside indices,
// an index out of range, a duplicate, and the errors of reference/mask.
// Source: DeepSeek-V4 report (compressed sparse attention); GPT-OSS (sinks).
#pragma once
#include "reference/attention/attention.hpp"

namespace plumbline::csa_attention {

struct Options : attention::Options {
  std::optional<std::int64_t> m, window;
  Grid grid = Grid::physical;

  template <class Visitor> void fields(Visitor& v) {
    attention::Options::fields(v);
    v("m", m, "tokens per block; required");
    v("window", window,
      "keys of the sliding window, the current token included; 0 = none; required");
    v("grid", grid, "blocks are cut from token 0, or inside each document");
  }
};

struct Inputs {
  StoredTensor query, kv, compressed, selected, indices, sink;
  StoredTensor given_output, given_lse, given_max_logit;
  MaskInputs mask;

  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("query", query, "B T H D", "queries");
    v.required_differentiable("kv", kv, "B S D",
                              "tokens of the window, each its key and its value");
    v.required_differentiable("compressed", compressed, "B N D",
                              "compressed blocks, each its key and its value");
    v.booleans("selected", selected, "B T N",
               "selected blocks; without selected and indices all visible ones");
    v.integers("indices", indices, "B T k", "selected blocks by number, -1 an empty slot");
    v.differentiable("sink", sink, "H", "sink logits, natural and not scaled; may be infinite");
    v.given("output", given_output, "B T H D", "a forward pass's own output");
    v.given("lse", given_lse, "B T H",
            "a forward pass's own lse, in the convention of the options");
    v.given("max_logit", given_max_logit, "B T H", "its largest logits");
    mask.fields(v, "N");
  }
};

struct Cotangents : attention::Cotangents {
  template <class Visitor> void fields(Visitor& v) {
    v.optional("output", output, "B T H D", "of the output");
    v.optional("lse", lse, "B T H", "of lse");
  }
};

template <class T> struct Outputs : attention::Outputs<T> {
  template <class Visitor> void fields(Visitor& v) {
    v("output", this->output, "B T H D", "sum of p kv over window and blocks");
    v("lse", this->lse, "B T H", "log-sum-exp of the logits, see the lse options");
    v.on_request("max_logit", this->max_logit, "B T H",
                 "largest logit of the row, natural, without the sink");
  }
};

template <class T> struct Gradients {
  Array<T> query, kv, compressed, sink;
  template <class Visitor> void fields(Visitor& v) {
    v("query", query);
    v("kv", kv);
    v("compressed", compressed);
    v("sink", sink);
  }
};

struct Op {
  using Options = csa_attention::Options;
  using Inputs = csa_attention::Inputs;
  using Cotangents = csa_attention::Cotangents;
  template <class T> using Outputs = csa_attention::Outputs<T>;
  template <class T> using Gradients = csa_attention::Gradients<T>;
  static constexpr std::string_view name = "csa_attention";
  static constexpr std::string_view summary =
      "softmax attention over a window of tokens, selected compressed blocks and a sink";
  static constexpr std::string_view formula =
      "output = sum_s p_s kv_s over window and blocks,  p_s = exp(c_s - ln(sum exp c + exp sink)), "
      " "
      "c_s = softmax_scale q . kv_s";
  static constexpr std::string_view honours[] = {"head_chunk", "key_block"};
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::csa_attention
