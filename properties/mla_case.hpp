// properties/mla_case.hpp: small problems of the MLA operations with pairwise different sizes.
#pragma once
#include <cmath>
#include <limits>

#include "properties/problem_generators.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline::properties {

struct MlaSizes {
  std::int64_t B, S, E, H, dn, dr, dv, Rq, Rkv, A, e, k;
  std::uint64_t seed;
};
inline MlaSizes draw_mla_sizes() {
  MlaSizes n{};
  n.B = support::pick(1, 2), n.S = support::pick(1, 7), n.E = 7, n.H = support::pick(1, 5);
  n.dn = support::pick(1, 3), n.dr = 2 * support::pick(1, 2), n.dv = support::pick(1, 5);
  n.Rq = 6, n.Rkv = 5, n.A = support::pick(1, 5), n.e = n.dr + support::pick(0, 2),
  n.k = support::pick(0, 5);
  n.seed = static_cast<std::uint64_t>(support::pick(0, 1 << 20));
  return n;
}

inline Json rope_of(std::int64_t dim, bool indexer) {
  Json rope = {{"theta", 100.0}, {"dim", dim}};
  if (!indexer) {
    rope["output"] = support::one_of<std::string>({"same", "half"});
    rope["pairing"] = support::one_of<std::string>({"interleaved", "half"});
  }
  return rope;
}
inline Json projection_options(const MlaSizes& n) {
  return {{"nope_dim", n.dn}, {"rope_dim", n.dr}, {"v_dim", n.dv}, {"rope", rope_of(n.dr, false)}};
}
inline Json indexer_options(const MlaSizes& n) {
  return {{"k", n.k}, {"rope", rope_of(n.dr, true)}};
}

class MlaWriter {
 public:
  explicit MlaWriter(const MlaSizes& sizes) : n(sizes) {
    made.heads = n.H, made.keys = n.S, made.tokens = n.S;
  }
  GeneratedProblem made;

  void real(const std::string& name, const Shape& shape) {
    support::put_in(made.problem, name.c_str(), values(name, shape));
  }
  void cot(const std::string& name, const Shape& shape) {
    support::put_cot(made.problem, name.c_str(), values("cot." + name, shape));
  }
  void cache(const std::string& name, std::int64_t capacity, std::int64_t width,
             std::int64_t live) {
    std::vector<double> all =
        support::Stream(n.seed, name).reals(n.B * capacity * width, support::Contents::dyadic);
    for (std::int64_t i = 0; i < n.B * capacity * width; ++i) {
      if (i / width % capacity >= live)
        all[static_cast<std::size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
    }
    support::put_in(made.problem, name.c_str(), support::f64s({n.B, capacity, width}, all));
  }
  void projection_weights() {
    real("wq_a", {n.E, n.Rq}), real("q_norm", {n.Rq}), real("wq_b", {n.Rq, n.H, n.dn + n.dr});
    real("wkv_a", {n.E, n.Rkv + n.dr}), real("kv_norm", {n.Rkv}),
        real("wkv_b", {n.Rkv, n.H, n.dn + n.dv});
    if (support::chance(50)) real("bq_b", {n.H, n.dn + n.dr});
    if (support::chance(50)) real("bkv_a", {n.Rkv + n.dr});
    if (support::chance(50)) real("bkv_b", {n.H, n.dn + n.dv});
  }
  void indexer_weights(const std::string& prefix) {
    real(prefix + "wq_b", {n.Rq, n.A, n.e}), real(prefix + "wk", {n.E, n.e});
    real(prefix + "k_norm_weight", {n.e}), real(prefix + "k_norm_bias", {n.e});
    real(prefix + "weights_proj", {n.E, n.A});
  }
  void whole_layer(bool indexer) {
    Json& options = made.problem.options = projection_options(n);
    options["indexer"] = indexer ? indexer_options(n) : Json(nullptr);
    real("x", {n.B, n.S, n.E});
    projection_weights();
    real("wo", {n.H, n.dv, n.E});
    if (indexer) indexer_weights("indexer_");
  }

 private:
  StoredTensor values(const std::string& name, const Shape& shape) const {
    return support::f64s(
        shape, support::Stream(n.seed, name).reals(count_of(shape), support::Contents::dyadic));
  }
  MlaSizes n;
};

}  // namespace plumbline::properties
