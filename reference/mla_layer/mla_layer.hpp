// reference/mla_layer/mla_layer.hpp
//
// The whole layer of DeepSeek-V3.2: projections, indexer, attention over the selected tokens, output projection and
// the indexer's loss; docs/ops/mla_layer.md.
// Guarantees: gradients of every weight. The indexer sees x and the query latent as constants: gradients of the loss
// reach indexer weights alone (exactly 0 elsewhere, and into x), gradients of the output never reach them. Tokens of
// the padding segment are read as 0, tokens that no real row reads are not read. Schedules sliced, absorbed, barrier,
// head_chunk and key_block reach the parts that honour them; prefill and step run the layer through the caches of
// mla_step, forward only, and give the same rows.
// Errors: those of the parts; a loss without an indexer; an indexer with a direct wq and no given.q_latent; a sparse
// loss that selects every token unless allow_full_selection.
// Source: DeepSeek-V3.2 report, sections 2.1 and 2.1.1.
#pragma once
#include "reference/indexer_loss/loss.hpp"
#include "reference/mla_layer/options.hpp"
#include "reference/mla_projection/mla_projection.hpp"

namespace plumbline::mla_layer {

struct Inputs {
  mla_projection::Inputs projection;
  StoredTensor wo;
  dsa_indexer::Inputs indexer;  // its weights; x, q_latent and mask are the layer's
  StoredTensor given_query, given_key, given_value, given_attention_output, given_attention_lse,
      given_attention_max_logit, given_log_mass, given_head_sum, given_target;
  MaskInputs mask;

  template <class Visitor> void weights(Visitor& v) {
    v.differentiable("wq", projection.wq, "E H dn+dr",
                     "direct query weight; or wq_a, q_norm and wq_b");
    v.differentiable("wq_a", projection.wq_a, "E Rq", "to the query latent");
    v.differentiable("q_norm", projection.q_norm, "Rq", "weight of its norm");
    v.differentiable("wq_b", projection.wq_b, "Rq H dn+dr", "from the query latent");
    v.required_differentiable("wkv_a", projection.wkv_a, "E Rkv+dr",
                              "to the key-value latent and the rotary key");
    v.required_differentiable("kv_norm", projection.kv_norm, "Rkv", "weight of the latent's norm");
    v.required_differentiable("wkv_b", projection.wkv_b, "Rkv H dn+dv",
                              "from the latent to keys and values");
    v.differentiable("bq", projection.bq, "H dn+dr", "bias of wq");
    v.differentiable("bq_a", projection.bq_a, "Rq", "bias of wq_a");
    v.differentiable("bq_b", projection.bq_b, "H dn+dr", "bias of wq_b");
    v.differentiable("bkv_a", projection.bkv_a, "Rkv+dr", "bias of wkv_a");
    v.differentiable("bkv_b", projection.bkv_b, "H dn+dv", "bias of wkv_b");
    v.required_differentiable("wo", wo, "H dv E", "output projection");
    v.differentiable("indexer_wq_b", indexer.wq_b, "Rq A e",
                     "indexer: from the query latent to queries");
    v.differentiable("indexer_wk", indexer.wk, "E e", "indexer: to keys");
    v.differentiable("indexer_k_norm_weight", indexer.k_norm_weight, "e",
                     "indexer: weight of the keys' norm");
    v.differentiable("indexer_k_norm_bias", indexer.k_norm_bias, "e", "indexer: its bias");
    v.differentiable("indexer_weights_proj", indexer.weights_proj, "E A",
                     "indexer: to head weights");
  }
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", projection.x, "B S E", "tokens");
    weights(v);
    v.given("query", given_query, "B S H dn+dr", "queries, scaled");
    v.given("key", given_key, "B S H dn+dr", "keys");
    v.given("value", given_value, "B S H dv", "values");
    v.given("q_latent", projection.given_q_latent, "B S Rq", "query latent after its norm");
    v.given("kv_latent", projection.given_kv_latent, "B S Rkv", "key-value latent after its norm");
    v.given("k_pe", projection.given_k_pe, "B S dr", "rotary key after rotation");
    v.given("attention_output", given_attention_output, "B T H dv",
            "a forward pass's own attention output");
    v.given("attention_lse", given_attention_lse, "B T H", "its log-sum-exp");
    v.given("attention_max_logit", given_attention_max_logit, "B T H", "its largest logits");
    v.given("indexer_index_q", indexer.given.index_q, "B S A e", "indexer queries");
    v.given("indexer_index_k", indexer.given.index_k, "B S e", "indexer keys");
    v.given("indexer_index_w", indexer.given.index_w, "B S A", "indexer head weights");
    v.given("indexer_scores", indexer.given.scores, "B T S", "scores, which top-k then takes");
    v.given_integers("indexer_indices", indexer.given.indices, "B T k", "the selection");
    v.given_booleans("indexer_selected", indexer.given.selected, "B T S", "the selection as a set");
    v.given("log_mass", given_log_mass, "B T H", "of the loss: ln Z of each head");
    v.given("head_sum", given_head_sum, "B T S", "of the loss: T");
    v.given("target", given_target, "B T S", "of the loss: t");
    mask.fields(v, "S");
  }
};

struct Cotangents {
  StoredTensor output, loss;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("output", output, "B T E", "of the output; required");
    v.optional("loss", loss, "", "of the loss; missing: 0");
  }
};

template <class T> struct Outputs {
  Array<T> output, loss;
  Array<T> query, key, value, q_latent, kv_latent, k_pe, attention_output, attention_lse,
      attention_max_logit;
  Array<T> indexer_index_q, indexer_index_k, indexer_index_w, indexer_scores;
  Array<std::int32_t> indexer_indices;
  Array<std::uint8_t> indexer_selected, row_valid;
  Array<T> row_loss, log_mass, head_sum, target, student;

  template <class Visitor> void fields(Visitor& v) {
    v("output", output, "B T E", "the layer's output");
    v("loss", loss, "", "the indexer's loss, 0 without one");
    v.on_request("query", query, "B S H dn+dr", "queries, scaled");
    v.on_request("key", key, "B S H dn+dr", "keys");
    v.on_request("value", value, "B S H dv", "values");
    v.on_request("q_latent", q_latent, "B S Rq", "query latent after its norm");
    v.on_request("kv_latent", kv_latent, "B S Rkv", "key-value latent after its norm");
    v.on_request("k_pe", k_pe, "B S dr", "rotary key after rotation");
    v.on_request("attention_output", attention_output, "B T H dv", "output of the attention");
    v.on_request("attention_lse", attention_lse, "B T H", "its log-sum-exp");
    v.on_request("attention_max_logit", attention_max_logit, "B T H", "its largest logits");
    v.on_request("indexer_index_q", indexer_index_q, "B S A e", "indexer queries");
    v.on_request("indexer_index_k", indexer_index_k, "B S e", "indexer keys");
    v.on_request("indexer_index_w", indexer_index_w, "B S A", "indexer head weights");
    v.on_request("indexer_scores", indexer_scores, "B T S", "scores, -inf at hidden keys");
    v.on_request("indexer_indices", indexer_indices, "B T k", "the selected tokens, best first");
    v.on_request("indexer_selected", indexer_selected, "B T S", "the selected tokens as a set");
    v.on_request("row_loss", row_loss, "B T", "of the loss");
    v.on_request("row_valid", row_valid, "B T", "of the loss");
    v.on_request("log_mass", log_mass, "B T H", "of the loss");
    v.on_request("head_sum", head_sum, "B T S", "of the loss");
    v.on_request("target", target, "B T S", "of the loss");
    v.on_request("student", student, "B T S", "of the loss");
  }
};

template <class T> struct Gradients {
  mla_projection::Gradients<T> projection;
  Array<T> wo;
  dsa_indexer::Gradients<T> indexer;
  template <class Visitor> void fields(Visitor& v) {
    projection.fields(v);
    v("wo", wo), v("indexer_wq_b", indexer.wq_b), v("indexer_wk", indexer.wk);
    v("indexer_k_norm_weight", indexer.k_norm_weight),
        v("indexer_k_norm_bias", indexer.k_norm_bias);
    v("indexer_weights_proj", indexer.weights_proj);
  }
};

struct Op {
  using Options = mla_layer::Options;
  using Inputs = mla_layer::Inputs;
  using Cotangents = mla_layer::Cotangents;
  template <class T> using Outputs = mla_layer::Outputs<T>;
  template <class T> using Gradients = mla_layer::Gradients<T>;
  static constexpr std::string_view name = "mla_layer";
  static constexpr std::string_view summary =
      "the DeepSeek-V3.2 layer from x to output and indexer loss";
  static constexpr std::string_view formula =
      "output = wo . mla_attention(mla_projection(x), selected by dsa_indexer);  loss = "
      "dsa_indexer_loss";
  static constexpr std::string_view honours[] = {"barrier",  "head_chunk", "key_block", "sliced",
                                                 "absorbed", "prefill",    "step"};
  static constexpr bool outputs_can_be_given = false;  // but for the stages that Inputs names
  static bool has_surrogate(const Options& options) {
    return options.loss && options.loss->gradient == indexer_loss::Gradient::p_minus_t;
  }
  static bool reaches(std::string_view output, std::string_view input) {
    return (output == "loss") == input.starts_with("indexer_");
  }
  static bool takes(std::string_view input, const Options& options) {
    return options.indexer.has_value() || !input.starts_with("indexer_");
  }
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::mla_layer
