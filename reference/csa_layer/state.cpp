#include "reference/csa_layer/state.hpp"

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T> std::span<T> rows_of(Array<T>& array, std::int64_t first, std::int64_t count) {
  return array.row({0, first}, count * array.shape[2]);
}

// New tokens enter a partial block; every block they complete is pooled and appended, and becomes the prior. fresh:
// what the tokens are, kv and gate side by side, from token `before` on.
template <class T> void enter(const Run& run, const csa_compress::Options& options,
                              csa_compress::Parts parts, const Entering& where,
                              std::span<const T> fresh_kv, std::span<const T> fresh_gate,
                              Pool<T>& pool) {
  const std::int64_t width = pool.blocks.shape[2], lanes = pool.partial_kv.shape[2];
  const std::int64_t held = where.before - where.begin(), count = where.end() - where.begin();
  Array<T> kv({1, count, lanes}), gate({1, count, lanes});
  const auto join = [&](const Array<T>& partial, std::span<const T> fresh, Array<T>& whole) {
    std::copy_n(partial.values.begin(), held * lanes, whole.values.begin());
    std::copy(fresh.begin(), fresh.end(), whole.values.begin() + held * lanes);
  };
  join(pool.partial_kv, fresh_kv, kv);
  join(pool.partial_gate, fresh_gate, gate);
  const std::int64_t made = count / where.m;
  if (made > 0) {
    const std::vector<std::int32_t> positions(where.positions.begin() + where.begin(),
                                              where.positions.end()),
        segments(where.segments.begin() + where.begin(), where.segments.end());
    MaskInputs mask;
    mask.positions = layer::row_of_integers(positions, "positions");
    mask.segment_ids = layer::row_of_integers(segments, "segment_ids");
    MaskOptions any;
    any.causal = false;
    Sizes sizes;
    sizes.set("B", 1, "");
    sizes.set("S", count, "");
    sizes.set("T", count, "");
    const Visibility tokens(any, mask, sizes, csa_compress::blocks_of(options, mask));
    if (options.overlap && where.follows(options.boundary)) {
      parts.prior_kv = view(pool.prior_kv, "state.prior_kv");
      parts.prior_gate = view(pool.prior_gate, "state.prior_gate");
    }
    const csa_compress::Compressor<T> compressor(tokens, parts, options, width);
    const StoredTensor all_kv = view(kv, "kv"), all_gate = view(gate, "gate");
    Array<T> compressed({1, made, width});
    compressor.make(run, csa_compress::stored_tokens<T>(all_kv, all_gate), compressor.all(),
                    compressed);
    std::copy(compressed.values.begin(), compressed.values.end(),
              rows_of(pool.blocks, where.blocks(), made).begin());
    if (options.overlap) {
      const std::int64_t from = (made - 1) * where.m * lanes, all = where.m * lanes;
      std::copy_n(kv.values.begin() + from, all, pool.prior_kv.values.begin());
      std::copy_n(gate.values.begin() + from, all, pool.prior_gate.values.begin());
    }
  }
  const auto keep = [&](const Array<T>& whole, Array<T>& partial) {
    std::fill(partial.values.begin(), partial.values.end(), T(0));
    std::copy(whole.values.begin() + made * where.m * lanes, whole.values.end(),
              partial.values.begin());
  };
  keep(kv, pool.partial_kv);
  keep(gate, pool.partial_gate);
}

// The new tokens through the weights of a compressor.
template <class T> void enter_projected(const Run& run, const csa_compress::Options& options,
                                        const csa_compress::Parts& parts, const StoredTensor& x,
                                        const StoredTensor& kv_proj, const StoredTensor& gate_proj,
                                        const Entering& where, Pool<T>& pool) {
  const std::int64_t lanes = pool.partial_kv.shape[2], count = where.end() - where.before;
  const csa_compress::ProjectedTokens<T> tokens(x, kv_proj, gate_proj);
  Buffer<T> kv(place(count * lanes)), gate(kv.size());
  const auto source = tokens.source();
  for_each_block(run, count, [&](std::int64_t first, std::int64_t last) {
    const std::size_t at = place(first * lanes), size = place((last - first) * lanes);
    source(0, where.before + first, where.before + last, std::span<T>(kv).subspan(at, size),
           std::span<T>(gate).subspan(at, size));
  });
  enter<T>(run, options, parts, where, kv, gate, pool);
}

}  // namespace

template <class T>
State<T> empty_state(const Sizes& sizes, const Options& options, std::int64_t capacity) {
  State<T> state;
  state.kv = Array<T>({1, capacity, sizes["D"]});
  if (!options.blocks()) return state;
  const std::int64_t m = *options.m;
  const auto pool = [&](std::int64_t width, bool two_lanes) {
    const std::int64_t lanes = two_lanes ? 2 * width : width;
    Pool<T> made;
    made.blocks = Array<T>({1, capacity / m, width});
    made.partial_kv = made.partial_gate = Array<T>({1, m, lanes});
    if (two_lanes) made.prior_kv = made.prior_gate = Array<T>({1, m, lanes});
    return made;
  };
  state.pool = pool(sizes["D"], options.kind == Kind::csa);
  if (options.indexer) state.indexer = pool(sizes["e"], true);
  return state;
}

template <class T> Outputs<T> advance(const Inputs& weights, const Options& options, const Run& run,
                                      const layer::NewTokens& tokens, const MaskInputs& rows,
                                      State<T>& state) {
  const std::int64_t before = state.length, fresh = tokens.x.size(1), all = before + fresh;
  layer::NewTokens now = tokens;
  now.x.notes = std::make_shared<const RowNotes>(layer::notes_of(tokens, options.mask));
  state.positions.insert(state.positions.end(), tokens.positions.begin(), tokens.positions.end());
  state.segments.insert(state.segments.end(), tokens.segments.begin(), tokens.segments.end());

  Inputs in = weights;
  in.x = layer::among_all(now.x, before);
  in.mask = rows;
  in.mask.positions = layer::row_of_integers(state.positions, "positions");
  in.mask.segment_ids = layer::row_of_integers(state.segments, "segment_ids");
  std::vector<std::int32_t> standing;
  if (!in.mask.row_index.given()) {
    for (std::int64_t s = before; s < all; ++s) standing.push_back(static_cast<std::int32_t>(s));
    in.mask.row_index = layer::list_of_integers(standing, "row_index");
  }

  // The new tokens enter: window keys, then what is compressed.
  const Sizes sizes = sizes_of(in, options);
  Sizes grid = sizes;
  const Visibility visibility(options.mask, in.mask, grid, blocks_of(options));
  const Projection<T> projection(in, options, sizes, visibility);
  for_each_block(run, fresh, [&](std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> list(place(last - first));
    for (std::int64_t i = first; i < last; ++i) list[place(i - first)] = before + i;
    projection.make_kv(list, rows_of(state.kv, before + first, last - first));
  });
  if (options.blocks()) {
    const Entering where{before, *options.m, state.positions, state.segments, state.prior_present};
    enter_projected<T>(run, compress_options(options),
                       {in.position_bias, in.compress_norm, {}, {}, {}}, in.x, in.kv_proj,
                       in.gate_proj, where, state.pool);
    if (options.indexer) {
      enter_projected<T>(run, indexer_options(options).compression(),
                         {in.indexer.position_bias, in.indexer.kv_norm_weight, {}, {}, {}}, in.x,
                         in.indexer.kv_proj, in.indexer.gate_proj, where, state.indexer);
    }
    if (all / *options.m > where.blocks()) state.prior_present = options.kind == Kind::csa;
  }
  state.length = all;

  // The whole layer over everything so far, its keys given.
  in.given_kv = layer::head_of(state.kv, all, "state.kv");
  if (options.blocks()) {
    const std::int64_t blocks = all / *options.m;
    in.given_compressed = layer::head_of(state.pool.blocks, blocks, "state.compressed");
    if (options.indexer)
      in.indexer.given.index_k =
          layer::head_of(state.indexer.blocks, blocks, "state.indexer_index_k");
  }
  return Layer<T>(in, options, run).forward();
}

template <class T>
Outputs<T> whole_outputs(const Sizes& sizes, const Options& options, const Run& run) {
  Outputs<T> whole;
  whole.output = Array<T>(sizes.shape("B T E"));
  whole.loss = Array<T>(Shape{});
  const auto make = [&](const char* name, auto& array, const char* letters, auto fill) {
    if (run.wants(name))
      array = std::remove_reference_t<decltype(array)>(sizes.shape(letters), fill);
  };
  make("query", whole.query, "B S H D", T(0)), make("kv", whole.kv, "B S D", T(0));
  make("q_latent", whole.q_latent, "B S Rq", T(0));
  make("attention_output", whole.attention_output, "B T H D", T(0));
  make("attention_lse", whole.attention_lse, "B T H", T(-infinity<T>()));
  make("attention_max_logit", whole.attention_max_logit, "B T H", T(-infinity<T>()));
  if (options.blocks()) make("compressed", whole.compressed, "B N D", T(0));
  if (!options.indexer) return whole;
  make("indexer_index_q", whole.indexer_index_q, "B S A e", T(0));
  make("indexer_index_k", whole.indexer_index_k, "B N e", T(0));
  make("indexer_index_w", whole.indexer_index_w, "B S A", T(0));
  make("indexer_scores", whole.indexer_scores, "B T N", T(-infinity<T>()));
  make("indexer_selected", whole.indexer_selected, "B T N", std::uint8_t{0});
  if (run.wants("indexer_indices")) {
    whole.indexer_indices = Array<std::int32_t>({sizes["B"], sizes["T"], *options.indexer->k}, -1);
  }
  return whole;
}

#define INSTANTIATE(T)                                                            \
  template State<T> empty_state<T>(const Sizes&, const Options&, std::int64_t);   \
  template Outputs<T> whole_outputs<T>(const Sizes&, const Options&, const Run&); \
  template Outputs<T> advance<T>(const Inputs&, const Options&, const Run&,       \
                                 const layer::NewTokens&, const MaskInputs&, State<T>&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
