// Which inputs belong to which options, the letters of all tensors, and what the parts of a layer take of its options.
#include "reference/csa_layer/layer.hpp"
#include "reference/error.hpp"

namespace plumbline::csa_layer {
namespace {

void need(const StoredTensor& tensor, const std::string& name, const std::string& why) {
  if (!tensor.given()) throw Error("in." + name, "nothing", "the tensor: " + why);
}
void exclude(const StoredTensor& tensor, const std::string& why) {
  if (tensor.given()) throw Error(tensor.name, "the tensor", "none: " + why);
}
std::string kind_name(const Options& options) {
  return std::string(names_of(options.kind)[static_cast<std::size_t>(options.kind)]);
}

void check_options(const Options& options) {
  if (options.blocks() && !options.m)
    throw Error("option m", "nothing", "the number of tokens per block, m >= 1");
  if (options.m && *options.m < 1) throw Error("option m", std::to_string(*options.m), "m >= 1");
  if (!options.window)
    throw Error("option window", "nothing", "a window >= 0 (0 = no window keys)");
  if (*options.window < 0)
    throw Error("option window", std::to_string(*options.window), "a window >= 0");
  if (options.indexer && options.kind != Kind::csa) {
    throw Error("option indexer", "an indexer with kind " + kind_name(options),
                "null: only csa selects blocks");
  }
  if (options.loss && !options.indexer)
    throw Error("option loss", "a loss without option indexer", "an indexer, or loss null");
  const auto same_m = [&](const std::optional<std::int64_t>& m, const char* where) {
    if (m && *m != *options.m) {
      throw Error(where, std::to_string(*m),
                  std::to_string(*options.m) + ", the layer's: its blocks are the same");
    }
  };
  const auto same_grid = [&](const std::optional<Grid>& grid, const char* where) {
    if (!grid || *grid == options.grid) return;
    const auto name = [](Grid g) { return std::string(names_of(g)[static_cast<std::size_t>(g)]); };
    throw Error(where, name(*grid), name(options.grid) + ", the layer's: its blocks are the same");
  };
  if (options.indexer) {
    same_m(options.indexer->m, "option indexer.m");
    same_grid(options.indexer->grid, "option indexer.grid");
  }
  if (options.loss) {
    same_m(options.loss->m, "option loss.m");
    same_grid(options.loss->named_grid, "option loss.grid");
    if (options.loss->window && *options.loss->window < 0)
      throw Error("option loss.window", std::to_string(*options.loss->window), "a window >= 0");
  }
}

}  // namespace

void check(const Inputs& in, const Options& options) {
  check_options(options);
  const csa_indexer::Inputs& weights = in.indexer;
  if (options.blocks()) {
    const std::string why = "option kind is " + kind_name(options);
    need(in.kv_proj, "kv_proj", why);
    need(in.gate_proj, "gate_proj", why);
    need(in.position_bias, "position_bias", why);
    need(in.compress_norm, "compress_norm", why);
  } else {
    const std::string why = "option kind is window: there are no blocks";
    for (const StoredTensor* tensor :
         {&in.kv_proj, &in.gate_proj, &in.position_bias, &in.compress_norm, &in.given_compressed}) {
      exclude(*tensor, why);
    }
  }
  if (!options.indexer) {
    for (const StoredTensor* tensor :
         {&weights.q_proj, &weights.kv_proj, &weights.gate_proj, &weights.position_bias,
          &weights.kv_norm_weight, &weights.weights_proj, &weights.given.index_q,
          &weights.given.index_k, &weights.given.index_w, &weights.given.scores,
          &weights.given.indices, &weights.given.selected}) {
      exclude(*tensor, "option indexer is null");
    }
  } else {
    const std::string why = "option indexer is given";
    need(weights.q_proj, "indexer_q_proj", why);
    need(weights.kv_proj, "indexer_kv_proj", why);
    need(weights.gate_proj, "indexer_gate_proj", why);
    need(weights.position_bias, "indexer_position_bias", why);
    need(weights.kv_norm_weight, "indexer_kv_norm_weight", why);
    need(weights.weights_proj, "indexer_weights_proj", why);
  }
  if (!options.loss) {
    for (const StoredTensor* tensor : {&in.given_log_mass, &in.given_head_sum, &in.given_target})
      exclude(*tensor, "option loss is null");
  }
}

void check_widths(const Options& options, const Sizes& sizes) {
  check_eps(options.eps);
  const Rotation<f64> queries(options.rope, sizes["D"]);
  if (options.blocks() && options.compress_rope)
    const Rotation<f64> blocks(*options.compress_rope, sizes["D"], "option compress_rope");
  if (!options.indexer) return;
  const csa_indexer::Options indexer = indexer_options(options);
  check_eps(indexer.eps, "option indexer.eps");
  const Rotation<f64> keys(indexer.rope, sizes["e"], "option indexer.rope");
}

Blocks blocks_of(const Options& options) {
  return options.blocks() ? Blocks{*options.m, options.grid} : Blocks{};
}

Sizes sizes_of(Inputs& in, const Options& options) {
  if (!options.blocks()) in.mask.valid = in.mask.mask = StoredTensor{};  // planes over blocks
  Sizes sizes;
  if (in.mask.row_index.given()) sizes.set("T", in.mask.row_index.size(0), in.mask.row_index.name);
  if (options.blocks()) sizes.set("m", *options.m, "option m");
  sizes.unify(in.x, "B S E");
  sizes.unify(in.wkv, "E D");
  if (options.blocks()) {
    const bool two = options.kind == Kind::csa;
    sizes.set("C", (two ? 2 : 1) * sizes["D"], two ? "2D" : "D, option kind is hca");
  }
  if (!in.mask.row_index.given()) sizes.set("T", sizes["S"], "S, without in.row_index");
  if (in.indexer.given.indices.given() && options.indexer->k)
    sizes.set("k", *options.indexer->k, "option indexer.k");
  if (options.blocks())  // the grid sets N, and holds it against every tensor over blocks
    Visibility(options.mask, in.mask, sizes, blocks_of(options));
  sizes.unify_all(in);
  const std::int64_t heads = sizes["H"], groups = sizes["G"], width = in.o_a.size(1);
  if (heads % groups != 0) {
    throw Error(in.o_a.name, "G = " + std::to_string(groups),
                "a divisor of H = " + std::to_string(heads));
  }
  if (groups * width != heads * sizes["D"]) {
    throw Error(in.o_a.name, "shape " + to_string(in.o_a.shape),
                "[G H*D/G r] with H*D/G = " + std::to_string(heads / groups * sizes["D"]));
  }
  if (in.o_b.size(0) != groups * sizes["r"]) {
    throw Error(
        in.o_b.name, "shape " + to_string(in.o_b.shape),
        "[G*r E] with G*r = " + std::to_string(groups * sizes["r"]) + " as in " + in.o_a.name);
  }
  return sizes;
}

csa_compress::Options compress_options(const Options& options) {
  csa_compress::Options compress;
  compress.m = options.m;
  compress.overlap = options.kind == Kind::csa;
  compress.eps = options.eps;
  compress.rope = options.compress_rope.value_or(options.rope);
  compress.boundary = options.boundary;
  compress.grid = options.grid;
  compress.mask.padding_segment = options.mask.padding_segment;
  return compress;
}

csa_indexer::Options indexer_options(const Options& options) {
  csa_indexer::Options of_layer;
  of_layer.m = options.m;
  of_layer.eps = options.eps;
  of_layer.rope = options.compress_rope.value_or(options.rope);
  of_layer.boundary = options.boundary;
  of_layer.grid = options.grid;
  of_layer.mask = options.mask;
  return options.indexer->over(of_layer);
}

indexer_loss::Options loss_options(const Options& options) {
  indexer_loss::Options loss = *options.loss;
  loss.mask = options.loss->named_mask.value_or(options.mask);
  loss.m = options.m;
  loss.grid = options.grid;
  if (!loss.window) loss.window = options.window;
  // Named by the loss, else by the indexer, else the preset's.
  const std::optional<ScoreScale>&own = options.loss->named_score_scale,
        &indexers = options.indexer->score_scale;
  loss.score_scale = own ? *own : indexers.value_or(options.loss->score_scale);
  return loss;
}

}  // namespace plumbline::csa_layer
