// properties/csa_layer_case.hpp: small problems of the CSA layer and its calls, with pairwise different sizes, of
// every kind, with documents.
#pragma once
#include "properties/csa_case.hpp"

namespace plumbline::properties {

struct CsaLayerSizes {
  std::int64_t B, S, E, H, G, D, r, Rq, A, e, k, m, window;
  std::string kind;
  bool indexer, documents;
  std::uint64_t seed;

  std::int64_t lanes() const { return kind == "csa" ? 2 * D : D; }
  std::int64_t blocks() const { return kind == "window" ? 0 : S / m; }
};
inline CsaLayerSizes draw_csa_layer_sizes(const std::vector<std::string>& kinds) {
  CsaLayerSizes n{};
  n.kind = support::one_of<std::string>(kinds);
  n.B = support::pick(1, 2), n.S = support::pick(1, 13), n.E = 7, n.H = support::pick(1, 4);
  n.G = n.H % 2 == 0 ? support::pick(1, 2) : 1, n.D = support::pick(2, 5), n.r = 3, n.Rq = 6;
  n.A = support::pick(1, 5), n.e = support::pick(2, 3), n.k = support::pick(0, 4),
  n.m = support::pick(1, 3), n.window = support::pick(0, 5);
  n.indexer = n.kind == "csa" && support::chance(80);
  n.documents = support::chance(50);
  n.seed = static_cast<std::uint64_t>(support::pick(0, 1 << 20));
  return n;
}
inline const std::vector<std::string> all_kinds = {"csa", "csa", "csa", "hca", "window"};

class CsaLayerWriter {
 public:
  explicit CsaLayerWriter(const CsaLayerSizes& sizes) : n(sizes) {
    made.heads = n.H, made.keys = n.S, made.tokens = n.S;
  }
  GeneratedProblem made;
  std::vector<std::int32_t> segments,
      positions;  // [B, S]; positions are without gaps in a document

  void real(const std::string& name, const Shape& shape) {
    support::put_in(made.problem, name, values(name, shape));
  }
  void cot(const std::string& name, const Shape& shape) {
    support::put_cot(made.problem, name, values("cot." + name, shape));
  }
  void weights() {
    Json& options = made.problem.options;
    const bool all_named = support::chance(60);
    options = {{"kind", n.kind}, {"window", n.window}, {"rope", {{"theta", 100.0}, {"dim", 2}}}};
    if (n.kind != "window" || all_named) options["m"] = n.m;
    if (support::chance(50)) options["compress_rope"] = {{"theta", 30.0}, {"dim", 2}};
    if (n.documents && support::chance(40)) options["boundary"] = "segments";
    real("wq_a", {n.E, n.Rq}), real("q_norm", {n.Rq}), real("wq_b", {n.Rq, n.H, n.D});
    real("wkv", {n.E, n.D}), real("kv_norm", {n.D});
    if (support::chance(70)) real("sink", {n.H});
    real("o_a", {n.G, n.H * n.D / n.G, n.r}), real("o_b", {n.G * n.r, n.E});
    if (n.kind != "window") {
      real("kv_proj", {n.E, n.lanes()}), real("gate_proj", {n.E, n.lanes()});
      real("position_bias", {n.m, n.lanes()}), real("compress_norm", {n.D});
    }
    options["indexer"] = nullptr;
    if (!n.indexer) return;
    options["indexer"] = {{"k", n.k}};
    real("indexer_q_proj", {n.Rq, n.A, n.e}), real("indexer_kv_proj", {n.E, 2 * n.e});
    real("indexer_gate_proj", {n.E, 2 * n.e}), real("indexer_position_bias", {n.m, 2 * n.e});
    real("indexer_kv_norm_weight", {n.e}), real("indexer_weights_proj", {n.E, n.A});
  }
  // Documents of every sequence of their own; an id may return.
  void documents() {
    for (std::int64_t b = 0; b < n.B; ++b) {
      const Documents drawn =
          n.documents ? draw_documents(n.S, true, 0)
                      : Documents{std::vector<std::int32_t>(static_cast<std::size_t>(n.S)), {}, 1};
      segments.insert(segments.end(), drawn.segments.begin(), drawn.segments.end());
      for (std::int64_t s = 0; s < n.S; ++s) {
        positions.push_back(n.documents ? drawn.positions[static_cast<std::size_t>(s)]
                                        : static_cast<std::int32_t>(s));
      }
    }
    if (!n.documents) return;
    support::put_in(made.problem, "segment_ids", support::i32s({n.B, n.S}, segments));
    support::put_in(made.problem, "positions", support::i32s({n.B, n.S}, positions));
  }
  void whole_layer() {
    weights();
    real("x", {n.B, n.S, n.E});
    documents();
  }
  // A state tensor [B, rows, width] of which each sequence's first live(b) rows are numbers.
  template <class Live>
  void state(const std::string& name, std::int64_t rows, std::int64_t width, Live live) {
    std::vector<double> all =
        support::Stream(n.seed, name).reals(n.B * rows * width, support::Contents::dyadic);
    for (std::int64_t i = 0; i < n.B * rows * width; ++i) {
      if (i / width % rows >= live(i / width / rows))
        all[static_cast<std::size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
    }
    support::put_in(made.problem, "state." + name, support::f64s({n.B, rows, width}, all));
  }

 private:
  StoredTensor values(const std::string& name, const Shape& shape) const {
    return support::f64s(
        shape, support::Stream(n.seed, name).reals(count_of(shape), support::Contents::dyadic));
  }
  CsaLayerSizes n;
};

}  // namespace plumbline::properties
