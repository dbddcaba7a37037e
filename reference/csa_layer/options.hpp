// reference/csa_layer/options.hpp: the options of the CSA layer, and what its parts take of them;
// docs/ops/csa_layer.md.
#pragma once
#include "reference/csa_indexer/options.hpp"
#include "reference/layer/options.hpp"

namespace plumbline::csa_layer {

enum class Kind { csa, hca, window };
inline std::span<const std::string_view> names_of(Kind) {
  static constexpr std::string_view names[] = {"csa", "hca", "window"};
  return names;
}

enum class Preset {
  maxtext_v4,
  exact,
  maxtext_v32,
  megatron,
  megatron_csa_eager,
  megatron_csa_fused,
  primus,
  veomni,
  tilelang
};
inline std::span<const std::string_view> names_of(Preset) {
  static constexpr std::string_view names[] = {
      "maxtext_v4",         "exact",  "maxtext_v32", "megatron", "megatron_csa_eager",
      "megatron_csa_fused", "primus", "veomni",      "tilelang"};
  return names;
}
inline const indexer_loss::Preset& preset_of(Preset preset) {
  using namespace indexer_loss::preset;
  static constexpr const indexer_loss::Preset* table[] = {
      &maxtext_v4,         &exact,  &maxtext_v32, &megatron, &megatron_csa_eager,
      &megatron_csa_fused, &primus, &veomni,      &tilelang};
  return *table[static_cast<std::size_t>(preset)];
}

struct LossOptions : layer::LossOptions<Preset> {
  std::optional<Grid> named_grid;
  std::optional<MaskOptions> named_mask;

  template <class Visitor> void fields(Visitor& v) {
    layer::LossOptions<Preset>::fields(v);
    v("window", window, "window of a joint teacher; default: the layer's");
    v("m", m, "tokens per block; that of the layer");
    v("grid", named_grid, "that of the layer");
    v("mask", named_mask, "who sees whom; default: the layer's");
  }
};

struct Options {
  Kind kind = Kind::csa;
  std::optional<std::int64_t> m, window;
  double eps = default_norm_eps;
  RopeOptions rope;
  std::optional<RopeOptions> compress_rope;
  Grid grid = Grid::physical;
  csa_compress::Boundary boundary = csa_compress::Boundary::positions;
  std::optional<csa_indexer::NamedOptions> indexer;
  std::optional<LossOptions> loss;
  MaskOptions mask;

  template <class Visitor> void fields(Visitor& v) {
    v("kind", kind,
      "blocks of two lanes and an indexer, blocks of one lane that every row sees, or no blocks");
    v("m", m, "tokens per block; required, but with kind window not used");
    v("window", window, "keys of the sliding window, the current token included; required");
    v("eps", eps, "of every norm");
    v("rope", rope, "rotary embedding of queries, window keys and output; required");
    v("compress_rope", compress_rope, "rotary embedding of the blocks; default: rope");
    v("grid", grid, "blocks are cut from token 0, or inside each document");
    v("boundary", boundary, "how the compression knows a document's first block");
    v("indexer", indexer, "options of csa_indexer; null: attention sees every visible block");
    v("loss", loss, "options of csa_indexer_loss; null: none");
    v("mask", mask, "who sees whom");
  }
  bool blocks() const { return kind != Kind::window; }
  std::int64_t lanes() const { return kind == Kind::csa ? 2 : 1; }
};

// The options of a part, as the layer fills them in.
csa_compress::Options compress_options(const Options& options);
csa_indexer::Options indexer_options(const Options& options);
indexer_loss::Options loss_options(const Options& options);

}  // namespace plumbline::csa_layer
