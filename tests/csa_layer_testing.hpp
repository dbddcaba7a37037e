// tests/csa_layer_testing.hpp: the layer worked by hand, a drawn one of any kind, and the chain of public operations
// that it stands for.
#pragma once
#include "reference/csa_attention/csa_attention.hpp"
#include "reference/csa_compress/csa_compress.hpp"
#include "reference/csa_indexer/csa_indexer.hpp"
#include "reference/csa_layer/csa_layer.hpp"
#include "reference/linear/linear.hpp"
#include "reference/rms_norm/rms_norm.hpp"
#include "reference/rope/rope.hpp"
#include "tests/mla_testing.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/stream.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::csa_layer_testing {

using support::f64s;
using support::Numbers;
using support::put_in;

inline constexpr double ln2 = 0.6931471805599453, ln3 = 1.0986122886681098;

// docs/ops/csa_layer.md: two tokens, the row at token 1, one head, blocks of one token, a window of one.
inline Problem by_hand() {
  Problem problem;
  const Json rope = {{"theta", 100.0}, {"dim", 2}};
  problem.options = {{"m", 1}, {"window", 1}, {"eps", 0.0}, {"rope", rope}};
  problem.options["indexer"] = {{"score_scale", "none"}};
  put_in(problem, "x", f64s({1, 2, 2}, {3, 4, 4, 3}));
  put_in(problem, "wq_a", f64s({2, 1}, {1, 0}));
  put_in(problem, "q_norm", f64s({1}, {1}));
  put_in(problem, "wq_b", f64s({1, 1, 4}, {5, 0, 0, 0}));
  put_in(problem, "wkv", f64s({2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}));
  put_in(problem, "kv_norm", f64s({4}, {ln3 / 1.6, 2.5, 1, 1}));
  put_in(problem, "compress_norm", f64s({4}, {2 * ln2 / 1.2, 2.5, 1, 1}));
  put_in(problem, "sink", f64s({1}, {ln2}));
  put_in(problem, "o_a", f64s({1, 4, 1}, {0, 1, 0, 0}));
  put_in(problem, "o_b", f64s({1, 2}, {9, 18}));
  put_in(problem, "indexer_q_proj", f64s({1, 1, 4}, {1, 0, 0, 0}));
  put_in(problem, "indexer_kv_norm_weight", f64s({4}, {1, 1, 1, 1}));
  put_in(problem, "indexer_weights_proj", f64s({2, 1}, {ln2 / 4.8, 0}));
  for (const std::string of : {"", "indexer_"}) {
    put_in(problem, of + "kv_proj",
           f64s({2, 8}, {12, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    put_in(problem, of + "gate_proj", f64s({2, 8}, Numbers(16, 0)));
    put_in(problem, of + "position_bias", f64s({1, 8}, {0, 0, 0, 0, ln3, ln3, ln3, ln3}));
  }
  put_in(problem, "row_index", support::i32s({1}, {1}));
  return problem;
}

inline StoredTensor drawn(const std::string& name, const Shape& shape) {
  return f64s(shape, support::Stream(3, name).reals(count_of(shape), support::Contents::dyadic));
}

// D = 4, so that the factor of the queries, 1/2, is a number.
inline Problem drawn_layer(Json loss, const std::string& kind = "csa", std::int64_t tokens = 14) {
  const std::int64_t S = tokens, E = 5, H = 4, D = 4, Rq = 6, G = 2, r = 3, m = 4, A = 3, e = 6;
  Problem problem;
  problem.options = {{"kind", kind}, {"window", 3}, {"rope", {{"theta", 100.0}, {"dim", 4}}}};
  problem.options["compress_rope"] = {{"theta", 30.0}, {"dim", 2}};
  problem.options["loss"] = std::move(loss);
  const auto real = [&](const std::string& name, const Shape& shape) {
    put_in(problem, name, drawn(name, shape));
  };
  real("x", {1, S, E}), real("wq_a", {E, Rq}), real("q_norm", {Rq}), real("wq_b", {Rq, H, D});
  real("wkv", {E, D}), real("kv_norm", {D}), real("sink", {H});
  real("o_a", {G, H * D / G, r}), real("o_b", {G * r, E});
  if (kind == "window") return problem;
  problem.options["m"] = m;
  const std::int64_t lanes = kind == "csa" ? 2 * D : D;
  real("kv_proj", {E, lanes}), real("gate_proj", {E, lanes}), real("position_bias", {m, lanes});
  real("compress_norm", {D});
  if (kind == "hca") return problem;
  problem.options["indexer"] = {{"k", 2}};
  real("indexer_q_proj", {Rq, A, e}), real("indexer_kv_proj", {E, 2 * e});
  real("indexer_gate_proj", {E, 2 * e}), real("indexer_position_bias", {m, 2 * e});
  real("indexer_kv_norm_weight", {e}), real("indexer_weights_proj", {E, A});
  return problem;
}

// The output of a drawn layer, operation by operation.
class Chain {
 public:
  explicit Chain(const Problem& layer) : layer_(layer), options_(layer.options) {}
  Array<mp50> output() {
    const Shape x = layer_.in.at("x").shape, o_a = layer_.in.at("o_a").shape;
    const std::int64_t S = x[1], E = x[2], D = 4, H = 4, Rq = 6;
    const Array<mp50> flat = as(numbers(layer_.in.at("x")), {S, E});
    const Array<mp50> latent =
        norm(as(linear(flat, weight("wq_a", {E, 1, Rq})), {1, S, Rq}), "q_norm");
    Array<mp50> query = as(linear(as(latent, {S, Rq}), layer_.in.at("wq_b")), {1, S, H, D});
    query = rope(norm(query, ""), false);
    const Array<mp50> kv =
        as(rope(as(norm(as(linear(flat, weight("wkv", {E, 1, D})), {1, S, D}), "kv_norm"),
                   {1, S, 1, D}),
                false),
           {1, S, D});

    Problem attention;
    attention.options = {{"window", options_["window"]}, {"softmax_scale", 0.5}};
    put(attention, "query", query), put(attention, "kv", kv);
    put_in(attention, "sink", layer_.in.at("sink"));
    Array<mp50> blocks;
    Array<std::int32_t> indices;
    if (options_["kind"] == "window") {  // blocks longer than the sequence: there are none
      attention.options["m"] = S + 1;
      put(attention, "compressed", Array<mp50>({1, 0, D}));
    } else {
      attention.options["m"] = options_["m"];
      put(attention, "compressed", blocks = compressed(flat));
    }
    if (options_["kind"] == "csa") {
      indices = selection(latent);
      StoredTensor chosen = support::i32s(indices.shape, indices.values);
      put_in(attention, "indices", chosen);
    }
    Array<mp50> heads =
        support::evaluate<csa_attention::Op, mp50>(attention, {}).outputs.at("output");
    heads = rope(heads, true);
    Array<mp50> z({S, o_a[0] * o_a[2]});
    for (std::int64_t g = 0; g < o_a[0]; ++g) {
      Array<mp50> part({S, o_a[1]});
      for (std::int64_t s = 0; s < S; ++s) {
        for (std::int64_t i = 0; i < o_a[1]; ++i)
          part({s, i}) = heads.values[static_cast<std::size_t>((s * o_a[0] + g) * o_a[1] + i)];
      }
      StoredTensor group = support::take(layer_.in.at("o_a"), 0, {g});
      group.shape = {o_a[1], 1, o_a[2]};
      group.stride = row_major(group.shape);
      const Array<mp50> made = linear(part, group);
      for (std::int64_t s = 0; s < S; ++s) {
        for (std::int64_t i = 0; i < o_a[2]; ++i) z({s, g * o_a[2] + i}) = made({s, 0, i});
      }
    }
    return as(linear(z, weight("o_b", {o_a[0] * o_a[2], 1, E})), {1, S, E});
  }

 private:
  static Array<mp50> as(Array<mp50> array, Shape shape) {
    array.shape = std::move(shape);
    return array;
  }
  static Array<mp50> numbers(const StoredTensor& tensor) {
    Array<mp50> array(tensor.shape);
    support::each_index(tensor.shape, [&](std::size_t flat, Index index) {
      array.values[flat] = Fetch<mp50>::element(tensor, index);
    });
    return array;
  }
  static void put(Problem& problem, const char* name, const Array<mp50>& array) {
    const auto held = std::make_shared<const Array<mp50>>(array);
    StoredTensor tensor = support::working(*held);
    tensor.owner = held;
    put_in(problem, name, tensor);
  }
  StoredTensor weight(const char* name, Shape shape) const {
    StoredTensor tensor = layer_.in.at(name);
    tensor.shape = std::move(shape);
    tensor.stride = row_major(tensor.shape);
    return tensor;
  }
  Array<mp50> linear(const Array<mp50>& x, const StoredTensor& w) const {
    Problem problem;
    put(problem, "x", x), put_in(problem, "weight", w);
    return support::evaluate<linear::Op, mp50>(problem, {}).outputs.at("y");
  }
  Array<mp50> norm(const Array<mp50>& x, const std::string& w) const {
    Problem problem;
    put(problem, "x", x);
    if (!w.empty()) put_in(problem, "weight", layer_.in.at(w));
    return support::evaluate<rms_norm::Op, mp50>(problem, {}).outputs.at("y");
  }
  Array<mp50> rope(const Array<mp50>& x, bool inverse) const {
    Problem problem;
    problem.options["rope"] = options_["rope"];
    problem.options["rope"]["inverse"] = inverse;
    put(problem, "x", x);
    return support::evaluate<rope::Op, mp50>(problem, {}).outputs.at("y");
  }
  Array<mp50> compressed(const Array<mp50>& flat) const {
    Problem problem;
    problem.options = {{"m", options_["m"]},
                       {"overlap", options_["kind"] == "csa"},
                       {"rope", options_["compress_rope"]}};
    const Shape w = layer_.in.at("kv_proj").shape;
    const Shape lanes = {1, flat.shape[0], w[1]};
    put(problem, "kv", as(linear(flat, weight("kv_proj", {w[0], 1, w[1]})), lanes));
    put(problem, "gate", as(linear(flat, weight("gate_proj", {w[0], 1, w[1]})), lanes));
    put_in(problem, "position_bias", layer_.in.at("position_bias"));
    put_in(problem, "norm_weight", layer_.in.at("compress_norm"));
    return support::evaluate<csa_compress::Op, mp50>(problem, {}).outputs.at("compressed");
  }
  Array<std::int32_t> selection(const Array<mp50>& latent) const {
    Problem problem;
    problem.options = {
        {"m", options_["m"]}, {"k", options_["indexer"]["k"]}, {"rope", options_["compress_rope"]}};
    put_in(problem, "x", layer_.in.at("x")), put(problem, "q_latent", latent);
    for (const char* name :
         {"q_proj", "kv_proj", "gate_proj", "position_bias", "kv_norm_weight", "weights_proj"}) {
      put_in(problem, name, layer_.in.at(std::string("indexer_") + name));
    }
    return support::evaluate<csa_indexer::Op, mp50>(problem, {}).integers.at("indices");
  }

  const Problem& layer_;
  Json options_;
};
inline Array<mp50> chain(const Problem& layer) { return Chain(layer).output(); }

}  // namespace plumbline::csa_layer_testing
