// properties/csa_layer_check.hpp: drawn CSA layers, their evaluation with types, and the classes that properties count.
#pragma once
#include "properties/agreement_check.hpp"
#include "properties/csa_layer_case.hpp"
#include "reference/csa_layer/csa_layer.hpp"

namespace plumbline::properties {

inline std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Drawn {
  CsaLayerSizes n;
  CsaLayerWriter write;
  Problem& problem() { return write.made.problem; }
};
inline Drawn draw(const std::vector<std::string>& kinds) {
  const CsaLayerSizes n = draw_csa_layer_sizes(kinds);
  return {n, CsaLayerWriter(n)};
}
inline void notes_of(Distribution& d, const CsaLayerSizes& n) {
  d.needs("hca or window", n.kind != "csa");
  d.needs("indexer that leaves blocks out", n.indexer && n.k < n.blocks());
  d.needs("documents", n.documents);
  d.needs("tokens of no block", n.kind != "window" && n.S % n.m != 0);
}

template <class T> Typed<T> layer(const Problem& problem, bool backward) {
  return support::evaluate<csa_layer::Op, T>(problem, {.backward = backward});
}

}  // namespace plumbline::properties
