// reference/mla_attention/mla_attention.hpp
//
// Softmax attention over the visible selected keys and a sink, with heads that share keys (MHA,
// GQA, MQA) or keys and values that a latent makes (MLA); docs/ops/mla_attention.md.
// Guarantees: value and gradient in T; a hidden or unselected key is never read; a row without keys
// has output 0.
// Schedules: head_chunk and key_block bound the numbers a row holds, absorbed attends to the
// latents themselves; none of them changes the function. The backward pass computes probabilities
// again from lse, or from given.lse.
// Errors: both or neither of key and the latent form, heads that Hk does not divide, widths that do
// not add up, an index out of range, a duplicate, schedule.absorbed without the latent form.
// Source: DeepSeek-V2 report, section 2.1.2 and appendix C (latent form); GPT-OSS and DeepSeek-V4
// (sinks).
#pragma once
#include "reference/attention/attention.hpp"

namespace plumbline::mla_attention {

struct Options : attention::Options {
  std::optional<std::int64_t> nope_dim, v_dim;

  template <class Visitor> void fields(Visitor& v) {
    attention::Options::fields(v);
    v("nope_dim", nope_dim, "channels of a key that the latent makes; the latent form needs it");
    v("v_dim", v_dim,
      "channels of a value; needed by the latent form, and where the value is part of the key");
  }
};

struct Inputs {
  StoredTensor query, key, value, kv_latent, k_pe, wkv_b, bkv_b, selected, indices, sink;
  StoredTensor given_output, given_lse, given_max_logit;
  MaskInputs mask;

  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("query", query, "B T H D", "queries");
    v.differentiable("key", key, "B S Hk D", "keys; head h uses key head floor(h Hk / H)");
    v.differentiable("value", value, "B S Hk Dv",
                     "values; without it the first v_dim channels of key");
    v.differentiable("kv_latent", kv_latent, "B S Rkv",
                     "instead of key and value: the normalised latent,");
    v.differentiable("k_pe", k_pe, "B S dr", "the rotated key channels that all heads share,");
    v.differentiable("wkv_b", wkv_b, "Rkv H dn+dv",
                     "the projection of the latent to keys and values,");
    v.differentiable("bkv_b", bkv_b, "H dn+dv", "and its bias");
    v.booleans("selected", selected, "B T S",
               "selected keys; without selected and indices all visible ones");
    v.integers("indices", indices, "B T k", "selected keys by number, -1 an empty slot");
    v.differentiable("sink", sink, "H", "sink logits, natural and not scaled; may be infinite");
    v.given("output", given_output, "B T H Dv", "a forward pass's own output");
    v.given("lse", given_lse, "B T H",
            "a forward pass's own lse, in the convention of the options");
    v.given("max_logit", given_max_logit, "B T H", "its largest logits");
    mask.fields(v, "S");
  }
};

template <class T> struct Gradients {
  Array<T> query, key, value, kv_latent, k_pe, wkv_b, bkv_b, sink;
  template <class Visitor> void fields(Visitor& v) {
    v("query", query);
    v("key", key);
    v("value", value);
    v("kv_latent", kv_latent);
    v("k_pe", k_pe);
    v("wkv_b", wkv_b);
    v("bkv_b", bkv_b);
    v("sink", sink);
  }
};

struct Op {
  using Options = mla_attention::Options;
  using Inputs = mla_attention::Inputs;
  using Cotangents = attention::Cotangents;
  template <class T> using Outputs = attention::Outputs<T>;
  template <class T> using Gradients = mla_attention::Gradients<T>;
  static constexpr std::string_view name = "mla_attention";
  static constexpr std::string_view summary =
      "softmax attention over selected keys and a sink, also from latents";
  static constexpr std::string_view formula =
      "output = sum_s p_s v_s,  p_s = exp(c_s - ln(sum exp c + exp sink)),  c_s = softmax_scale q "
      ". k_s";
  static constexpr std::string_view honours[] = {"head_chunk", "key_block", "absorbed"};
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::mla_attention
