// reference/csa_compress/csa_compress.hpp
//
// The compressor of DeepSeek-V4: tokens pooled into blocks, channel by channel; docs/ops/csa_compress.md.
//     compressed[b, j, c] = rope(rms_norm(Σ_i w_i·kv_i)),  w = softmax of gate_i + position_bias
// over the m tokens of block j−1 in lane A (channels [0, D)) and the block's own m tokens in lane B ([D, 2D)).
// Guarantees: value and gradient in T for every input. Tokens after the last whole block are not read, but for
// leftover_kv and leftover_gate. Calls that carry prior_* and leftover_* give the blocks of one call, bit for bit.
// Errors: those of reference/csa_compress/compressor.hpp; an odd number of channels with two lanes; a NaN or infinity
// in any token of a block; a cotangent of an output that the options leave out.
// Source: DeepSeek-V4 report, compressed sparse attention.
#pragma once
#include "reference/csa_compress/compressor.hpp"
#include "reference/tensor/sizes.hpp"

namespace plumbline::csa_compress {

struct Inputs {
  StoredTensor kv, gate;
  Parts parts;
  MaskInputs mask;  // positions, segment_ids, cu_seqlens

  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("kv", kv, "B S D|2D",
                              "values of both lanes, A then B; D with overlap false");
    v.required_differentiable("gate", gate, "B S D|2D", "logits of their weights");
    v.differentiable("position_bias", parts.position_bias, "m D|2D",
                     "added to the gate of token i of a block");
    v.differentiable("norm_weight", parts.norm_weight, "D", "weight of the norm");
    v.differentiable("prior_kv", parts.prior_kv, "B m 2D",
                     "kv of the block before the first token; with prior_gate");
    v.differentiable("prior_gate", parts.prior_gate, "B m 2D", "its gate, without position_bias");
    v.booleans("prior_present", parts.prior_present, "B",
               "false: the first block has no lane A; default all true");
    v.integers("positions", mask.positions, "B S", "position of each token; default 0 ... S-1");
    v.integers("segment_ids", mask.segment_ids, "B S", "document of each token");
    v.integers("cu_seqlens", mask.cu_seqlens, "n+1",
               "stands for segment_ids and restarting positions");
  }
};

struct Cotangents {
  StoredTensor compressed, prior_kv, prior_gate, leftover_kv, leftover_gate;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("compressed", compressed, "B N D", "of the blocks");
    v.optional("prior_kv", prior_kv, "B m 2D", "of the copied last block");
    v.optional("prior_gate", prior_gate, "B m 2D", "of its gate");
    v.optional("leftover_kv", leftover_kv, "B S%m D|2D", "of the copied rest");
    v.optional("leftover_gate", leftover_gate, "B S%m D|2D", "of its gate");
  }
};

template <class T> struct Outputs {
  Array<T> compressed, prior_kv, prior_gate, leftover_kv, leftover_gate;
  Array<std::uint8_t> prior_present;
  template <class Visitor> void fields(Visitor& v) {
    v("compressed", compressed, "B N D", "the blocks");
    v("prior_kv", prior_kv, "B m 2D",
      "for a next call: the last whole block, else the given prior, else 0 (grid physical, "
      "overlap)");
    v("prior_gate", prior_gate, "B m 2D", "its gate, without position_bias");
    v("prior_present", prior_present, "B", "there is one; to be cleared where a document begins");
    v("leftover_kv", leftover_kv, "B S%m D|2D",
      "tokens of no block, to be put in front of the next call's (grid physical)");
    v("leftover_gate", leftover_gate, "B S%m D|2D", "their gate");
  }
};
template <class T> struct Gradients {
  Array<T> kv, gate;
  PartGradients<T> parts;
  template <class Visitor> void fields(Visitor& v) {
    v("kv", kv), v("gate", gate), v("position_bias", parts.position_bias);
    v("norm_weight", parts.norm_weight), v("prior_kv", parts.prior_kv);
    v("prior_gate", parts.prior_gate);
  }
};

struct Op {
  using Options = csa_compress::Options;
  using Inputs = csa_compress::Inputs;
  using Cotangents = csa_compress::Cotangents;
  template <class T> using Outputs = csa_compress::Outputs<T>;
  template <class T> using Gradients = csa_compress::Gradients<T>;
  static constexpr std::string_view name = "csa_compress";
  static constexpr std::string_view summary = "tokens pooled into blocks, as DeepSeek-V4 does";
  static constexpr std::string_view formula =
      "compressed[b,j,c] = rope(rms_norm(sum_i w_i kv_i)), w = softmax(gate_i + position_bias) "
      "over "
      "block j-1 (lane A) and j (lane B)";
  static constexpr std::string_view honours[] = {"step"};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::csa_compress
