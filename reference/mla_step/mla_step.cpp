#include "reference/mla_step/mla_step.hpp"

#include <algorithm>

#include "reference/error.hpp"
#include "reference/layer/server_call.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_step {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

Sizes checked(const Inputs& in, const mla_layer::Options& options) {
  layer::refuse_masks(in.refused);
  mla_layer::check_indexer(in.layer, options);
  layer::check_server_options(options.loss.has_value(), options.mask);
  layer::need_state(in.length, "state.length", "the tensor [B]: tokens in the caches");
  layer::need_state(in.old_positions, "state.positions", "the tensor [B, P]");
  layer::need_state(in.old_segments, "state.segment_ids", "the tensor [B, P]");
  if (options.indexer)
    layer::need_state(in.index_k, "state.indexer_index_k",
                      "the tensor [B, P, e]: option indexer is given");
  if (!options.indexer && in.index_k.given())
    throw Error(in.index_k.name, "the tensor", "none: option indexer is null");
  Sizes sizes;
  const auto width = [&](const char* letter, const std::optional<std::int64_t>& value,
                         const char* name) {
    if (value) sizes.set(letter, *value, name);
  };
  width("dn", options.projection.nope_dim, "option nope_dim");
  width("dr", options.projection.rope_dim, "option rope_dim");
  width("dv", options.projection.v_dim, "option v_dim");
  Inputs named = in;
  sizes.unify_all(named);
  layer::check_lengths(in.length, sizes);
  return sizes;
}

// The live part of one sequence's caches.
template <class T> mla_layer::Cache<T> cache_of(const Inputs& in, const mla_layer::Options& options,
                                                const Sizes& sizes, std::int64_t b,
                                                const std::vector<std::int32_t>& documents) {
  mla_layer::Cache<T> cache;
  const std::int64_t capacity = sizes["P"];
  cache.length = integer_at(in.length, {b});
  // A live token that no new row sees (another document, padding) may hold anything.
  const auto seen = [&](std::int64_t s) {
    const auto segment = static_cast<std::int32_t>(integer_at(in.old_segments, {b, s}));
    if (options.mask.padding_segment && segment == *options.mask.padding_segment) return false;
    return !options.mask.documents.value_or(true) ||
           std::find(documents.begin(), documents.end(), segment) != documents.end();
  };
  const auto read = [&](const StoredTensor& from, Array<T>& to, std::int64_t width) {
    to = Array<T>({1, capacity, width});
    StoredTensor unseen = from;
    unseen.nonfinite = NonFinite::allow;
    for (std::int64_t s = 0; s < cache.length; ++s)
      fetch<T>(seen(s) ? from : unseen, {b, s}, to.row({0, s}, width));
  };
  read(in.kv_latent, cache.kv_latent, sizes["Rkv"]);
  read(in.k_pe, cache.k_pe, sizes["dr"]);
  if (options.indexer) read(in.index_k, cache.index_k, sizes["e"]);
  for (std::int64_t s = 0; s < cache.length; ++s) {
    cache.positions.push_back(static_cast<std::int32_t>(integer_at(in.old_positions, {b, s})));
    cache.segments.push_back(static_cast<std::int32_t>(integer_at(in.old_segments, {b, s})));
  }
  return cache;
}

}  // namespace

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  const Sizes sizes = checked(in, options);
  const std::int64_t batch = sizes["B"], fresh = sizes["L"], capacity = sizes["P"];
  mla_layer::Options inner = options;
  inner.mask.documents = options.mask.documents.value_or(true);
  Sizes shapes =
      sizes;  // of the layer's outputs: rows and tokens are the new ones, keys range over the caches
  shapes.set("T", fresh, "L");
  shapes.set("S", fresh, "L");
  shapes.set("K", capacity, "P");
  Outputs<T> out;
  out.layer = mla_layer::whole_outputs<T>(shapes, options, run);
  out.length = Array<std::int32_t>({batch});
  out.positions = Array<std::int32_t>({batch, capacity});
  out.segments = Array<std::int32_t>({batch, capacity});
  out.kv_latent = Array<T>(sizes.shape("B P Rkv"));
  out.k_pe = Array<T>(sizes.shape("B P dr"));
  if (options.indexer) out.index_k = Array<T>(sizes.shape("B P e"));

  std::vector<std::int64_t> rows(place(fresh));
  for (std::int64_t i = 0; i < fresh; ++i) rows[place(i)] = i;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t before = integer_at(in.length, {b});
    const layer::NewTokens now =
        layer::new_tokens(in.layer.projection.x, in.positions, in.segment_ids, b, before);
    std::vector<std::int32_t> rows_of = now.segments;
    std::erase_if(rows_of, [&](std::int32_t s) {
      return options.mask.padding_segment && s == *options.mask.padding_segment;
    });
    mla_layer::Cache<T> cache = cache_of<T>(in, options, sizes, b, rows_of);
    if (fresh > 0) {
      auto part = mla_layer::advance<T>(in.layer, inner, run, now, {}, cache);
      layer::place_outputs<T>(part, out.layer, {b, rows, 0, before});
    }
    out.length({b}) = static_cast<std::int32_t>(cache.length);
    const auto write = [&](const Array<T>& from, Array<T>& to) {
      const auto values = from.row({0}, static_cast<std::int64_t>(from.values.size()));
      std::copy(values.begin(), values.end(),
                to.row({b}, static_cast<std::int64_t>(values.size())).begin());
    };
    write(cache.kv_latent, out.kv_latent);
    write(cache.k_pe, out.k_pe);
    if (options.indexer) write(cache.index_k, out.index_k);
    std::copy(cache.positions.begin(), cache.positions.end(),
              out.positions.row({b}, capacity).begin());
    std::copy(cache.segments.begin(), cache.segments.end(),
              out.segments.row({b}, capacity).begin());
  }
  return out;
}

template <class T>
Gradients<T> Op::backward(const Inputs&, const Options&, const Run&, const Cotangents&) {
  throw Error("mla_step", "a backward pass", "a forward pass: a call of a server has no gradients");
}

#define INSTANTIATE(T)                                                             \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);   \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_step
