// reference/csa_layer/csa_layer.hpp
//
// The whole layer of DeepSeek-V4: projections, compression of tokens into blocks, indexer, attention over a window
// and blocks, grouped output projection and the indexer's loss; docs/ops/csa_layer.md.
// Guarantees: gradients of every weight. The indexer sees x and the query latent as constants: gradients of the loss
// reach indexer weights alone (exactly 0 elsewhere, and into x), gradients of the output never reach them. Tokens of
// the padding segment are read as 0; tokens that no real row reads are not read; only the tokens and blocks that the
// rows need are projected. Schedules barrier, head_chunk and key_block reach the parts that honour them; prefill and
// step run the layer through the state of csa_step, forward only, and give the same rows.
// Errors: those of the parts; a loss without an indexer; an indexer with kind hca or window; compressor weights with
// kind window; H not a multiple of the groups of o_a; a sparse loss that selects every block unless
// allow_full_selection.
// Source: DeepSeek-V4 report, sections 2.3 and 2.3.1; heavily compressed attention (hca) is section 2.3.2.
#pragma once
#include "reference/csa_indexer/csa_indexer.hpp"
#include "reference/csa_layer/options.hpp"

namespace plumbline::csa_layer {

struct Inputs {
  StoredTensor x;
  StoredTensor wq_a, q_norm, wq_b, wkv, kv_norm, kv_proj, gate_proj, position_bias, compress_norm,
      sink, o_a, o_b;
  csa_indexer::Inputs
      indexer;  // its weights and given stages; x, q_latent and mask are the layer's
  StoredTensor given_query, given_kv, given_compressed, given_q_latent, given_attention_output,
      given_attention_lse, given_attention_max_logit, given_log_mass, given_head_sum, given_target;
  MaskInputs mask;

  template <class Visitor> void weights(Visitor& v) {
    v.required_differentiable("wq_a", wq_a, "E Rq", "to the query latent");
    v.required_differentiable("q_norm", q_norm, "Rq", "weight of its norm");
    v.required_differentiable("wq_b", wq_b, "Rq H D", "from the query latent to queries");
    v.required_differentiable("wkv", wkv, "E D", "to window keys, which are values too");
    v.required_differentiable("kv_norm", kv_norm, "D", "weight of their norm");
    v.differentiable("kv_proj", kv_proj, "E C", "to what is compressed; C = 2D, with kind hca D");
    v.differentiable("gate_proj", gate_proj, "E C", "to the gates of the compression");
    v.differentiable("position_bias", position_bias, "m C", "of the gates, by place in a block");
    v.differentiable("compress_norm", compress_norm, "D", "weight of the blocks' norm");
    v.differentiable("sink", sink, "H", "sink logits; may be infinite");
    v.required_differentiable("o_a", o_a, "G H*D/G r", "output projection of each group of heads");
    v.required_differentiable("o_b", o_b, "G*r E", "from the groups to the output");
    v.differentiable("indexer_q_proj", indexer.q_proj, "Rq A e",
                     "indexer: from the query latent to queries");
    v.differentiable("indexer_kv_proj", indexer.kv_proj, "E 2e", "indexer: to what is compressed");
    v.differentiable("indexer_gate_proj", indexer.gate_proj, "E 2e", "indexer: to its gates");
    v.differentiable("indexer_position_bias", indexer.position_bias, "m 2e",
                     "indexer: of the gates");
    v.differentiable("indexer_kv_norm_weight", indexer.kv_norm_weight, "e",
                     "indexer: weight of the blocks' norm");
    v.differentiable("indexer_weights_proj", indexer.weights_proj, "E A",
                     "indexer: to head weights");
  }
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "B S E", "tokens");
    weights(v);
    v.given("query", given_query, "B S H D", "queries, rotated and scaled");
    v.given("kv", given_kv, "B S D", "window keys");
    v.given("compressed", given_compressed, "B N D", "compressed blocks");
    v.given("q_latent", given_q_latent, "B S Rq", "query latent after its norm");
    v.given("attention_output", given_attention_output, "B T H D",
            "a forward pass's own attention output, before the inverse rotation");
    v.given("attention_lse", given_attention_lse, "B T H", "its log-sum-exp");
    v.given("attention_max_logit", given_attention_max_logit, "B T H", "its largest logits");
    v.given("indexer_index_q", indexer.given.index_q, "B S A e", "indexer queries");
    v.given("indexer_index_k", indexer.given.index_k, "B N e", "indexer keys");
    v.given("indexer_index_w", indexer.given.index_w, "B S A", "indexer head weights");
    v.given("indexer_scores", indexer.given.scores, "B T N", "scores, which top-k then takes");
    v.given_integers("indexer_indices", indexer.given.indices, "B T k", "the selection");
    v.given_booleans("indexer_selected", indexer.given.selected, "B T N", "the selection as a set");
    v.given("log_mass", given_log_mass, "B T H", "of the loss: ln Z of each head");
    v.given("head_sum", given_head_sum, "B T N", "of the loss: T");
    v.given("target", given_target, "B T N", "of the loss: t");
    mask.fields(v, "N");
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
  Array<T> query, kv, compressed, q_latent, attention_output, attention_lse, attention_max_logit;
  Array<T> indexer_index_q, indexer_index_k, indexer_index_w, indexer_scores;
  Array<std::int32_t> indexer_indices;
  Array<std::uint8_t> indexer_selected, row_valid;
  Array<T> row_loss, log_mass, head_sum, target, student;

  template <class Visitor> void fields(Visitor& v) {
    v("output", output, "B T E", "the layer's output");
    v("loss", loss, "", "the indexer's loss, 0 without one");
    v.on_request("query", query, "B S H D", "queries, rotated and scaled");
    v.on_request("kv", kv, "B S D", "window keys");
    v.on_request("compressed", compressed, "B N D", "compressed blocks");
    v.on_request("q_latent", q_latent, "B S Rq", "query latent after its norm");
    v.on_request("attention_output", attention_output, "B T H D",
                 "output of the attention, before the inverse rotation");
    v.on_request("attention_lse", attention_lse, "B T H", "its log-sum-exp");
    v.on_request("attention_max_logit", attention_max_logit, "B T H", "its largest logits");
    v.on_request("indexer_index_q", indexer_index_q, "B S A e", "indexer queries");
    v.on_request("indexer_index_k", indexer_index_k, "B N e", "indexer keys");
    v.on_request("indexer_index_w", indexer_index_w, "B S A", "indexer head weights");
    v.on_request("indexer_scores", indexer_scores, "B T N", "scores, -inf at hidden blocks");
    v.on_request("indexer_indices", indexer_indices, "B T k", "the selected blocks, best first");
    v.on_request("indexer_selected", indexer_selected, "B T N", "the selected blocks as a set");
    v.on_request("row_loss", row_loss, "B T", "of the loss");
    v.on_request("row_valid", row_valid, "B T", "of the loss");
    v.on_request("log_mass", log_mass, "B T H", "of the loss");
    v.on_request("head_sum", head_sum, "B T N", "of the loss");
    v.on_request("target", target, "B T N", "of the loss");
    v.on_request("student", student, "B T N", "of the loss");
  }
};

template <class T> struct Gradients {
  Array<T> x, wq_a, q_norm, wq_b, wkv, kv_norm, kv_proj, gate_proj, position_bias, compress_norm,
      sink, o_a, o_b;
  csa_indexer::Gradients<T> indexer;
  template <class Visitor> void fields(Visitor& v) {
    v("x", x), v("wq_a", wq_a), v("q_norm", q_norm), v("wq_b", wq_b), v("wkv", wkv);
    v("kv_norm", kv_norm), v("kv_proj", kv_proj), v("gate_proj", gate_proj);
    v("position_bias", position_bias), v("compress_norm", compress_norm), v("sink", sink);
    v("o_a", o_a), v("o_b", o_b), v("indexer_q_proj", indexer.q_proj);
    v("indexer_kv_proj", indexer.kv_proj), v("indexer_gate_proj", indexer.gate_proj);
    v("indexer_position_bias", indexer.position_bias);
    v("indexer_kv_norm_weight", indexer.kv_norm_weight);
    v("indexer_weights_proj", indexer.weights_proj);
  }
};

struct Op {
  using Options = csa_layer::Options;
  using Inputs = csa_layer::Inputs;
  using Cotangents = csa_layer::Cotangents;
  template <class T> using Outputs = csa_layer::Outputs<T>;
  template <class T> using Gradients = csa_layer::Gradients<T>;
  static constexpr std::string_view name = "csa_layer";
  static constexpr std::string_view summary =
      "a DeepSeek-V4 layer: projections, compressed sparse attention, output, indexer loss";
  static constexpr std::string_view formula =
      "output = o_b (o_a (inverse rope (csa_attention(query, kv, compressed, top-k of the "
      "indexer))));  loss of csa_indexer_loss into the indexer alone";
  static constexpr std::string_view honours[] = {"barrier", "head_chunk", "key_block", "prefill",
                                                 "step"};
  static constexpr bool outputs_can_be_given = false;  // but for the stages that Inputs names
  static bool has_surrogate(const Options& options) {
    return options.loss && options.loss->gradient == indexer_loss::Gradient::p_minus_t;
  }
  static bool reaches(std::string_view output, std::string_view input) {
    return (output == "loss") == input.starts_with("indexer_");
  }
  static bool takes(std::string_view input, const Options& options) {
    if (input.starts_with("indexer_")) return options.indexer.has_value();
    const bool of_blocks = input == "kv_proj" || input == "gate_proj" || input == "position_bias" ||
                           input == "compress_norm" || input == "valid" || input == "mask";
    return options.blocks() || !of_blocks;
  }
  template <class SizeOf> static std::optional<std::int64_t> derived(std::string_view letter,
                                                                     const Options& options,
                                                                     const SizeOf& size) {
    if (letter == "C") return options.lanes() * size("D");
    if (letter == "H*D/G") return size("H") * size("D") / size("G");
    if (letter == "G*r") return size("G") * size("r");
    return std::nullopt;
  }
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::csa_layer
