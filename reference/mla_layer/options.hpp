// reference/mla_layer/options.hpp: the options of the MLA layer; docs/ops/mla_layer.md.
#pragma once
#include "reference/dsa_indexer/dsa_indexer.hpp"
#include "reference/layer/options.hpp"
#include "reference/mla_projection/options.hpp"

namespace plumbline::mla_layer {

enum class Preset { maxtext_v32, exact, maxtext_v4, megatron, tilelang };
inline std::span<const std::string_view> names_of(Preset) {
  static constexpr std::string_view names[] = {"maxtext_v32", "exact", "maxtext_v4", "megatron",
                                               "tilelang"};
  return names;
}
inline const indexer_loss::Preset& preset_of(Preset preset) {
  using namespace indexer_loss::preset;
  static constexpr const indexer_loss::Preset* table[] = {&maxtext_v32, &exact, &maxtext_v4,
                                                          &megatron, &tilelang};
  return *table[static_cast<std::size_t>(preset)];
}
using LossOptions = layer::LossOptions<Preset>;

// The options of dsa_indexer; its mask is the layer's.
struct IndexerOptions : dsa_indexer::Options {
  std::optional<ScoreScale> named_score_scale;

  template <class Visitor> void fields(Visitor& v) {
    v("k", k, "tokens to select; required");
    v("tie", tie, "equal scores: exactly k, lower index first; or every score >= the k-th");
    v("score_scale", named_score_scale,
      "factor of the score: (A e)^-1/2 (default), e^-1/2 or 1; the loss takes it too");
    v.prepare([this] { score_scale = named_score_scale.value_or(ScoreScale::heads_and_dim); });
    v("eps", eps, "of the layer norm of the keys");
    v("rope", rope, "rotary embedding of queries and keys; required");
  }
};

struct Options {
  mla_projection::Options projection;
  std::optional<IndexerOptions> indexer;
  std::optional<LossOptions> loss;
  MaskOptions mask;

  template <class Visitor> void fields(Visitor& v) {
    projection.fields(v);
    v("indexer", indexer, "options of dsa_indexer; null: attention sees every visible key");
    v("loss", loss, "options of dsa_indexer_loss; null: none");
    v("mask", mask, "who sees whom; indexer and loss take it too");
  }
};

}  // namespace plumbline::mla_layer
