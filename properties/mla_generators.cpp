// properties/mla_generators.cpp: problems of the MLA operations for properties of all operations. Attention and the
// layer take the latent form and no loss, so that every schedule applies; mla_layer_property.cpp has the loss.
#include "properties/mla_case.hpp"
#include "properties/problem_generators.hpp"

namespace plumbline::properties {
namespace {

GeneratedProblem attention() {
  const MlaSizes n = draw_mla_sizes();
  MlaWriter write(n);
  Problem& problem = write.made.problem;
  problem.options = {{"nope_dim", n.dn}, {"v_dim", n.dv}, {"softmax_scale", 0.5}};
  write.real("query", {n.B, n.S, n.H, n.dn + n.dr});
  write.real("kv_latent", {n.B, n.S, n.Rkv});
  write.real("k_pe", {n.B, n.S, n.dr});
  write.real("wkv_b", {n.Rkv, n.H, n.dn + n.dv});
  if (support::chance(50)) write.real("bkv_b", {n.H, n.dn + n.dv});
  if (support::chance(50)) write.real("sink", {n.H});
  write.cot("output", {n.B, n.S, n.H, n.dv});
  write.cot("lse", {n.B, n.S, n.H});
  return write.made;
}

GeneratedProblem projection() {
  const MlaSizes n = draw_mla_sizes();
  MlaWriter write(n);
  write.made.problem.options = projection_options(n);
  write.real("x", {n.B, n.S, n.E});
  write.projection_weights();
  write.cot("query", {n.B, n.S, n.H, n.dn + n.dr});
  write.cot("key", {n.B, n.S, n.H, n.dn + n.dr});
  write.cot("value", {n.B, n.S, n.H, n.dv});
  return write.made;
}

GeneratedProblem indexer() {
  const MlaSizes n = draw_mla_sizes();
  MlaWriter write(n);
  write.made.heads = n.A;
  write.made.problem.options = indexer_options(n);
  write.real("x", {n.B, n.S, n.E});
  write.real("q_latent", {n.B, n.S, n.Rq});
  write.indexer_weights("");
  write.cot("scores", {n.B, n.S, n.S});
  return write.made;
}

GeneratedProblem layer() {
  const MlaSizes n = draw_mla_sizes();
  MlaWriter write(n);
  write.whole_layer(support::chance(80));
  write.cot("output", {n.B, n.S, n.E});
  return write.made;
}

// Caches with garbage beyond their length: nobody may read it.
GeneratedProblem step() {
  const MlaSizes n = draw_mla_sizes();
  MlaWriter write(n);
  const bool indexer = support::chance(80);
  write.whole_layer(indexer);
  Problem& problem = write.made.problem;
  const std::int64_t before = support::pick(0, 4), capacity = before + n.S + support::pick(0, 2);
  const std::int64_t live[] = {before};
  write.cache("state.kv_latent", capacity, n.Rkv, live[0]);
  write.cache("state.k_pe", capacity, n.dr, live[0]);
  if (indexer) write.cache("state.indexer_index_k", capacity, n.e, live[0]);
  support::put_in(
      problem, "state.length",
      support::i32s({n.B}, std::vector<std::int32_t>(static_cast<std::size_t>(n.B),
                                                     static_cast<std::int32_t>(before))));
  std::vector<std::int32_t> positions, segments;
  for (std::int64_t b = 0; b < n.B; ++b) {
    for (std::int64_t s = 0; s < capacity; ++s) {
      positions.push_back(static_cast<std::int32_t>(s < before ? s : -77));
      segments.push_back(s < before ? 0 : 55);
    }
  }
  support::put_in(problem, "state.positions", support::i32s({n.B, capacity}, positions));
  support::put_in(problem, "state.segment_ids", support::i32s({n.B, capacity}, segments));
  return write.made;
}

const bool listed[] = {
    add_generator("mla_attention", attention), add_generator("mla_projection", projection),
    add_generator("dsa_indexer", indexer),     add_generator("mla_layer", layer),
    add_generator("mla_step", step),
};

}  // namespace
}  // namespace plumbline::properties
