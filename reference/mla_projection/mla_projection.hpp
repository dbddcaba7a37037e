// reference/mla_projection/mla_projection.hpp
//
// The projections of multi-head latent attention, from x to query, key and value;
// docs/ops/mla_projection.md.
//     query: x·wq, or rms_norm(x·wq_a)·wq_b; per head nope | pe, pe rotated, both times a scale
//     x·wkv_a = latent | k_pe; latent normed, k_pe rotated once and shared by the heads;
//     latent·wkv_b = per head k_nope | value; key = k_nope | k_pe
// Guarantees: value and gradient in T; schedule sliced contracts the two parts of wq (wq_b), wkv_b
// and their biases one by one instead of splitting a product, and never changes the function. Given
// latents (q_latent, kv_latent, k_pe) are constants: what leads to them is not read and has
// gradient 0.
// Errors: wq together with wq_a, q_norm or wq_b, or none of them; a bias without its weight; sliced
// with F8 weights; mscale without yarn; dims that are missing, not positive or (rope_dim) odd;
// those of the norms and of reference/rope.
// Source: DeepSeek-V2 report, equations 9 to 19; slices: MaxText #4630.
#pragma once
#include <string_view>

#include "reference/mla_projection/options.hpp"
#include "reference/operation/run.hpp"
#include "reference/tensor/sizes.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::mla_projection {

struct Inputs {
  StoredTensor x, positions;
  StoredTensor wq, wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b;
  StoredTensor bq, bq_a, bq_b, bkv_a, bkv_b;
  StoredTensor given_q_latent, given_kv_latent, given_k_pe;

  template <class Visitor> void fields(Visitor& v) {
    v.required_differentiable("x", x, "B S E", "tokens");
    v.integers("positions", positions, "B S", "position of each token; default 0 ... S-1");
    v.differentiable("wq", wq, "E H dn+dr", "direct query weight; or wq_a, q_norm and wq_b");
    v.differentiable("wq_a", wq_a, "E Rq", "to the query latent");
    v.differentiable("q_norm", q_norm, "Rq", "weight of its norm");
    v.differentiable("wq_b", wq_b, "Rq H dn+dr", "from the query latent");
    v.required_differentiable("wkv_a", wkv_a, "E Rkv+dr",
                              "to the key-value latent and the rotary key");
    v.required_differentiable("kv_norm", kv_norm, "Rkv", "weight of the latent's norm");
    v.required_differentiable("wkv_b", wkv_b, "Rkv H dn+dv", "from the latent to keys and values");
    v.differentiable("bq", bq, "H dn+dr", "bias of wq");
    v.differentiable("bq_a", bq_a, "Rq", "bias of wq_a");
    v.differentiable("bq_b", bq_b, "H dn+dr", "bias of wq_b");
    v.differentiable("bkv_a", bkv_a, "Rkv+dr", "bias of wkv_a");
    v.differentiable("bkv_b", bkv_b, "H dn+dv", "bias of wkv_b");
    v.given("q_latent", given_q_latent, "B S Rq", "stands for the normed query latent");
    v.given("kv_latent", given_kv_latent, "B S Rkv", "stands for the normed latent");
    v.given("k_pe", given_k_pe, "B S dr", "stands for the rotated key");
  }
};

struct Cotangents {
  StoredTensor query, key, value, q_latent, kv_latent, k_pe;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("query", query, "B S H dn+dr", "of the queries");
    v.optional("key", key, "B S H dn+dr", "of the keys");
    v.optional("value", value, "B S H dv", "of the values");
    v.optional("q_latent", q_latent, "B S Rq", "of the query latent");
    v.optional("kv_latent", kv_latent, "B S Rkv", "of the latent");
    v.optional("k_pe", k_pe, "B S dr", "of the rotary key");
  }
};

template <class T> struct Outputs {
  Array<T> query, key, value, q_latent, kv_latent, k_pe;
  template <class Visitor> void fields(Visitor& v) {
    v("query", query, "B S H dn+dr", "queries, scaled");
    v("key", key, "B S H dn+dr", "keys");
    v("value", value, "B S H dv", "values");
    v("q_latent", q_latent, "B S Rq", "query latent after its norm; none with wq");
    v("kv_latent", kv_latent, "B S Rkv", "latent after its norm, as a cache holds it");
    v("k_pe", k_pe, "B S dr", "rotary key after rotation, as a cache holds it");
  }
};
template <class T> struct Gradients {
  Array<T> x, wq, wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b, bq, bq_a, bq_b, bkv_a, bkv_b;
  template <class Visitor> void fields(Visitor& v) {
    v("x", x), v("wq", wq), v("wq_a", wq_a), v("q_norm", q_norm), v("wq_b", wq_b),
        v("wkv_a", wkv_a);
    v("kv_norm", kv_norm), v("wkv_b", wkv_b);
    v("bq", bq), v("bq_a", bq_a), v("bq_b", bq_b), v("bkv_a", bkv_a), v("bkv_b", bkv_b);
  }
};

struct Op {
  using Options = mla_projection::Options;
  using Inputs = mla_projection::Inputs;
  using Cotangents = mla_projection::Cotangents;
  template <class T> using Outputs = mla_projection::Outputs<T>;
  template <class T> using Gradients = mla_projection::Gradients<T>;
  static constexpr std::string_view name = "mla_projection";
  static constexpr std::string_view summary =
      "queries, keys and values of multi-head latent attention";
  static constexpr std::string_view formula =
      "query = [nope, rope(pe)] c of rms_norm(x wq_a) wq_b; key = [k_nope, rope(k_pe)], value of "
      "rms_norm(latent) wkv_b";
  static constexpr std::string_view honours[] = {"sliced"};
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&);
};

}  // namespace plumbline::mla_projection
