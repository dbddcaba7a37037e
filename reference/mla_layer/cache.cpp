#include "reference/mla_layer/cache.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_layer {
template <class T>
Outputs<T> whole_outputs(const Sizes& sizes, const Options& options, const Run& run) {
  Outputs<T> whole;
  whole.output = Array<T>(sizes.shape("B T E"));
  whole.loss = Array<T>(Shape{});
  const auto make = [&](const char* name, auto& array, const char* letters, auto fill) {
    if (run.wants(name))
      array = std::remove_reference_t<decltype(array)>(sizes.shape(letters), fill);
  };
  make("query", whole.query, "B S H dn+dr", T(0)), make("key", whole.key, "B S H dn+dr", T(0));
  make("value", whole.value, "B S H dv", T(0)), make("kv_latent", whole.kv_latent, "B S Rkv", T(0));
  make("k_pe", whole.k_pe, "B S dr", T(0));
  if (sizes.known("Rq")) make("q_latent", whole.q_latent, "B S Rq", T(0));
  make("attention_output", whole.attention_output, "B T H dv", T(0));
  make("attention_lse", whole.attention_lse, "B T H", T(-infinity<T>()));
  make("attention_max_logit", whole.attention_max_logit, "B T H", T(-infinity<T>()));
  if (!options.indexer) return whole;
  make("indexer_index_q", whole.indexer_index_q, "B S A e", T(0));
  make("indexer_index_k", whole.indexer_index_k, "B S e", T(0));
  make("indexer_index_w", whole.indexer_index_w, "B S A", T(0));
  make("indexer_scores", whole.indexer_scores, "B T K", T(-infinity<T>()));
  make("indexer_selected", whole.indexer_selected, "B T K", std::uint8_t{0});
  if (run.wants("indexer_indices")) {
    whole.indexer_indices = Array<std::int32_t>({sizes["B"], sizes["T"], *options.indexer->k}, -1);
  }
  return whole;
}

template <class T> Outputs<T> advance(const Inputs& weights, const Options& options, const Run& run,
                                      const layer::NewTokens& tokens, const MaskInputs& rows,
                                      Cache<T>& cache) {
  const std::int64_t before = cache.length, fresh = tokens.x.size(1);
  const StoredTensor positions = layer::row_of_integers(tokens.positions, "positions");
  const StoredTensor segments = layer::row_of_integers(tokens.segments, "segment_ids");
  check_indexer(weights, options);
  layer::NewTokens now = tokens;
  now.x.notes = std::make_shared<const RowNotes>(layer::notes_of(tokens, options.mask));

  // The new tokens enter the caches.
  mla_projection::Inputs projected = weights.projection;
  projected.x = now.x;
  projected.positions = positions;
  const mla_projection::Projection<T> projection(projected, options.projection,
                                                 run.schedule.sliced);
  in_chunks(fresh, rows_of_a_block, [&](std::int64_t first, std::int64_t last) {
    mla_projection::Tokens<T> block = projection.read(first, last - first);
    projection.make_kv_latent(block);
    const auto copy = [&](const Buffer<T>& from, Array<T>& to) {
      std::copy(from.begin(), from.end(), to.values.begin() + (before + first) * to.shape[2]);
    };
    copy(block.kv_latent, cache.kv_latent);
    copy(block.k_pe, cache.k_pe);
  });
  if (options.indexer) {
    dsa_indexer::Inputs in = weights.indexer;
    in.x = now.x;
    in.mask.positions = positions;
    in.mask.segment_ids = segments;
    dsa_indexer::Options choice = *options.indexer;
    choice.mask = options.mask;
    const dsa_indexer::Tokens<T> index(in, choice, RowNote::as_stored, "option indexer.");
    Array<T> keys(index.sizes().shape("B S e"));
    index.make_k(run, index.all(), keys);
    std::copy(keys.values.begin(), keys.values.end(),
              cache.index_k.values.begin() + before * cache.index_k.shape[2]);
  }
  cache.length += fresh;
  cache.positions.insert(cache.positions.end(), tokens.positions.begin(), tokens.positions.end());
  cache.segments.insert(cache.segments.end(), tokens.segments.begin(), tokens.segments.end());

  // The whole layer over everything so far, its caches given.
  Inputs in = weights;
  in.projection.x = layer::among_all(now.x, before);
  in.projection.given_kv_latent = layer::head_of(cache.kv_latent, cache.length, "state.kv_latent");
  in.projection.given_k_pe = layer::head_of(cache.k_pe, cache.length, "state.k_pe");
  if (options.indexer)
    in.indexer.given.index_k = layer::head_of(cache.index_k, cache.length, "state.indexer_index_k");
  in.mask = rows;
  in.mask.positions = layer::row_of_integers(cache.positions, "positions");
  in.mask.segment_ids = layer::row_of_integers(cache.segments, "segment_ids");
  std::vector<std::int32_t> standing;
  if (!in.mask.row_index.given()) {
    for (std::int64_t s = before; s < cache.length; ++s)
      standing.push_back(static_cast<std::int32_t>(s));
    in.mask.row_index = layer::list_of_integers(standing, "row_index");
  }
  return Layer<T>(in, options, run).forward();
}

#define INSTANTIATE(T)                                                            \
  template Outputs<T> whole_outputs<T>(const Sizes&, const Options&, const Run&); \
  template Outputs<T> advance<T>(const Inputs&, const Options&, const Run&,       \
                                 const layer::NewTokens&, const MaskInputs&, Cache<T>&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_layer
