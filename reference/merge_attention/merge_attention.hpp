// reference/merge_attention/merge_attention.hpp
//
// Attention over a set of keys from attentions over its parts, by their log-sum-exps;
// docs/ops/merge_attention.md.
// Guarantees: value and gradient in T; splits of the keys merged give the whole, gradients
// included; a part with an empty lse is never read. Without a live part the row is an empty one:
// output 0, and only a counted sink in lse.
// Errors: empty_lse "0", which no part without keys could be told by; an lse that is the other
// infinity.
// Source: FlashDecoding (Dao et al. 2023); Milakov and Gimelshein 2018, section 3.1.
#pragma once
#include <array>

#include "reference/attention/attention.hpp"

namespace plumbline::merge_attention {

struct Options : attention::LseOptions {
  template <class Visitor> void fields(Visitor& v) {
    v("lse_base", base, "base of the logarithm in lse, of parts and result");
    v("lse_includes_sink", includes_sink,
      "the sink is a term of the result's lse; it never is of a part's");
    v("empty_lse", empty, "lse of a part, or a result, without keys: -inf (default) or +inf");
  }
};

struct Inputs {
  StoredTensor outputs, lse, sink;
  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("outputs", outputs, "P B T H D", "outputs of the parts");
    v.required_differentiable("lse", lse, "P B T H", "their log-sum-exps, without the sink");
    v.differentiable("sink", sink, "H", "sink logits, natural; may be infinite");
  }
};

struct Cotangents {
  StoredTensor output, lse;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("output", output, "B T H D", "of the output");
    v.optional("lse", lse, "B T H", "of lse");
  }
};

template <class T> struct Outputs {
  Array<T> output, lse;
  template <class Visitor> void fields(Visitor& v) {
    v("output", output, "B T H D", "sum of the parts by their weights");
    v("lse", lse, "B T H", "log-sum-exp over all keys");
  }
};
template <class T> struct Gradients {
  Array<T> outputs, lse, sink;
  template <class Visitor> void fields(Visitor& v) {
    v("outputs", outputs), v("lse", lse), v("sink", sink);
  }
};

struct Op {
  using Options = merge_attention::Options;
  using Inputs = merge_attention::Inputs;
  using Cotangents = merge_attention::Cotangents;
  template <class T> using Outputs = merge_attention::Outputs<T>;
  template <class T> using Gradients = merge_attention::Gradients<T>;
  static constexpr std::string_view name = "merge_attention";
  static constexpr std::string_view summary =
      "attention over all keys from attentions over parts of them";
  static constexpr std::string_view formula =
      "output = sum_p exp(lse_p) output_p / (sum_p exp(lse_p) + exp(sink))";
  static constexpr std::array<std::string_view, 0> honours{};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::merge_attention
