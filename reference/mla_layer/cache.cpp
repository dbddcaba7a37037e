#include "reference/mla_layer/cache.hpp"

#include <map>

#include "reference/error.hpp"

namespace plumbline::mla_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

StoredTensor row_of_integers(const std::vector<std::int32_t>& values, const char* name) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.data = reinterpret_cast<const std::byte*>(values.data());
  tensor.dtype = Dtype::i32;
  tensor.shape = {1, static_cast<std::int64_t>(values.size())};
  tensor.stride = row_major(tensor.shape);
  tensor.present = true;
  return tensor;
}

// The first `length` tokens of a cache [1, P, …].
template <class T>
StoredTensor head_of(const Array<T>& cache, std::int64_t length, const char* name) {
  StoredTensor tensor = view(cache, name);
  tensor.shape[1] = length;
  return tensor;
}

// x of the new tokens where they stand among all; the tokens before them are blank and their storage not there.
StoredTensor among_all(const StoredTensor& x, std::int64_t before) {
  StoredTensor whole = x;
  RowNotes notes(place(before), RowNote::blank);
  for (std::int64_t s = 0; s < x.size(1); ++s)
    notes.push_back(x.notes ? (*x.notes)[place(s)] : RowNote::as_stored);
  whole.shape[1] += before;
  whole.notes = std::make_shared<const RowNotes>(std::move(notes));
  const std::size_t bytes = x.dtype == Dtype::working ? x.element_bytes : size_of(x.dtype);
  const auto shift = static_cast<std::uintptr_t>(before * x.stride[1]) * bytes;
  whole.data = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(x.data) - shift);
  if (x.low) whole.low = std::make_shared<StoredTensor>(among_all(*x.low, before));
  // A scale has one entry for every token, which moves along, or one for all of them.
  if (x.scale && x.scale->size(1) == x.size(1)) {
    whole.scale = std::make_shared<StoredTensor>(among_all(*x.scale, before));
  }
  return whole;
}

// The arrays of an Outputs by name, so that two of them can be walked side by side.
template <class T> struct ByName {
  std::map<std::string, Array<T>*, std::less<>> real;
  std::map<std::string, Array<std::int32_t>*, std::less<>> integers;
  std::map<std::string, Array<std::uint8_t>*, std::less<>> flags;
  std::map<std::string, std::string, std::less<>> letters;
  void take(std::string_view n, Array<T>& a) { real[std::string(n)] = &a; }
  void take(std::string_view n, Array<std::int32_t>& a) { integers[std::string(n)] = &a; }
  void take(std::string_view n, Array<std::uint8_t>& a) { flags[std::string(n)] = &a; }
  template <class U>
  void operator()(std::string_view n, Array<U>& a, std::string_view l, std::string_view) {
    take(n, a);
    letters[std::string(n)] = std::string(l);
  }
  template <class U>
  void on_request(std::string_view n, Array<U>& a, std::string_view l, std::string_view d) {
    (*this)(n, a, l, d);
  }
};

template <class U> void place_array(const Array<U>& part, Array<U>& whole, std::string_view letters,
                                    std::int64_t b, std::span<const std::int64_t> rows,
                                    std::int64_t first, std::int64_t from) {
  if (!part.given() || !whole.given() || letters.empty()) return;
  const auto width =
      [](const Array<U>& array) {  // a plane over keys may be narrower than the whole one
        std::int64_t product = 1;
        for (std::size_t axis = 2; axis < array.shape.size(); ++axis) product *= array.shape[axis];
        return product;
      };
  const auto copy = [&](std::int64_t source, std::int64_t target) {
    const auto values = part.row({0, source}, width(part));
    std::copy(values.begin(), values.end(), whole.row({b, target}, width(whole)).begin());
  };
  if (letters.starts_with("B T")) {
    for (std::size_t i = 0; i < rows.size(); ++i) copy(static_cast<std::int64_t>(i), rows[i]);
  } else {
    for (std::int64_t s = from; s < part.shape[1]; ++s) copy(s, first + s - from);
  }
}

}  // namespace

template <class T> void place_outputs(Outputs<T>& part, Outputs<T>& whole, std::int64_t b,
                                      std::span<const std::int64_t> rows, std::int64_t first,
                                      std::int64_t from) {
  ByName<T> source, target;
  part.fields(source);
  whole.fields(target);
  const auto all = [&](auto& sources, auto& targets) {
    for (auto& [name, array] : sources)
      place_array(*array, *targets[name], source.letters[name], b, rows, first, from);
  };
  all(source.real, target.real);
  all(source.integers, target.integers);
  all(source.flags, target.flags);
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

void refuse_given(const Inputs& in, const std::string& where) {
  for (const StoredTensor* given :
       {&in.given_query, &in.given_key, &in.given_value, &in.projection.given_q_latent,
        &in.projection.given_kv_latent, &in.projection.given_k_pe, &in.given_attention_output,
        &in.given_attention_lse, &in.given_attention_max_logit, &in.indexer.given.index_q,
        &in.indexer.given.index_k, &in.indexer.given.index_w, &in.indexer.given.scores,
        &in.indexer.given.indices, &in.indexer.given.selected, &in.given_log_mass,
        &in.given_head_sum, &in.given_target}) {
    if (given->given())
      throw Error(given->name, "the tensor with " + where, "no given stage: caches give them");
  }
}

template <class T> Outputs<T> advance(const Inputs& weights, const Options& options, const Run& run,
                                      const NewTokens& tokens, const MaskInputs& rows,
                                      Cache<T>& cache) {
  const std::int64_t before = cache.length, fresh = tokens.x.size(1);
  const StoredTensor positions = row_of_integers(tokens.positions, "positions");
  const StoredTensor segments = row_of_integers(tokens.segments, "segment_ids");
  check_indexer(weights, options);
  NewTokens now = tokens;
  RowNotes notes = tokens.x.notes ? *tokens.x.notes : RowNotes(place(fresh), RowNote::as_stored);
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (options.mask.padding_segment && tokens.segments[i] == *options.mask.padding_segment)
      notes[i] = RowNote::blank;
  }
  now.x.notes = std::make_shared<const RowNotes>(std::move(notes));

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
  in.projection.x = among_all(now.x, before);
  in.projection.given_kv_latent = head_of(cache.kv_latent, cache.length, "state.kv_latent");
  in.projection.given_k_pe = head_of(cache.k_pe, cache.length, "state.k_pe");
  if (options.indexer)
    in.indexer.given.index_k = head_of(cache.index_k, cache.length, "state.indexer_index_k");
  in.mask = rows;
  in.mask.positions = row_of_integers(cache.positions, "positions");
  in.mask.segment_ids = row_of_integers(cache.segments, "segment_ids");
  std::vector<std::int32_t> standing;
  if (!in.mask.row_index.given()) {
    for (std::int64_t s = before; s < cache.length; ++s)
      standing.push_back(static_cast<std::int32_t>(s));
    in.mask.row_index = row_of_integers(standing, "row_index");
    in.mask.row_index.shape = {fresh};
    in.mask.row_index.stride = {1};
  }
  return Layer<T>(in, options, run).forward();
}

template Outputs<f32> whole_outputs<f32>(const Sizes&, const Options&, const Run&);
template Outputs<f32> advance<f32>(const Inputs&, const Options&, const Run&, const NewTokens&,
                                   const MaskInputs&, Cache<f32>&);
template void place_outputs<f32>(Outputs<f32>&, Outputs<f32>&, std::int64_t,
                                 std::span<const std::int64_t>, std::int64_t, std::int64_t);
template Outputs<f64> whole_outputs<f64>(const Sizes&, const Options&, const Run&);
template Outputs<f64> advance<f64>(const Inputs&, const Options&, const Run&, const NewTokens&,
                                   const MaskInputs&, Cache<f64>&);
template void place_outputs<f64>(Outputs<f64>&, Outputs<f64>&, std::int64_t,
                                 std::span<const std::int64_t>, std::int64_t, std::int64_t);
template Outputs<f192> whole_outputs<f192>(const Sizes&, const Options&, const Run&);
template Outputs<f192> advance<f192>(const Inputs&, const Options&, const Run&, const NewTokens&,
                                     const MaskInputs&, Cache<f192>&);
template void place_outputs<f192>(Outputs<f192>&, Outputs<f192>&, std::int64_t,
                                  std::span<const std::int64_t>, std::int64_t, std::int64_t);
template Outputs<mp50> whole_outputs<mp50>(const Sizes&, const Options&, const Run&);
template Outputs<mp50> advance<mp50>(const Inputs&, const Options&, const Run&, const NewTokens&,
                                     const MaskInputs&, Cache<mp50>&);
template void place_outputs<mp50>(Outputs<mp50>&, Outputs<mp50>&, std::int64_t,
                                  std::span<const std::int64_t>, std::int64_t, std::int64_t);
template Outputs<mp100> whole_outputs<mp100>(const Sizes&, const Options&, const Run&);
template Outputs<mp100> advance<mp100>(const Inputs&, const Options&, const Run&, const NewTokens&,
                                       const MaskInputs&, Cache<mp100>&);
template void place_outputs<mp100>(Outputs<mp100>&, Outputs<mp100>&, std::int64_t,
                                   std::span<const std::int64_t>, std::int64_t, std::int64_t);

}  // namespace plumbline::mla_layer
