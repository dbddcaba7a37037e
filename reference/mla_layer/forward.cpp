#include <cstring>

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/mla_layer/cache.hpp"

namespace plumbline::mla_layer {
namespace {

// A copy of some rows of a plane [B, T, S] of one sequence, cut to the keys there are: flags as flags, a float mask
// (with its remainder or scale) as doubles.
StoredTensor cut_plane(const StoredTensor& plane, std::int64_t b,
                       std::span<const std::int64_t> rows, std::int64_t keys) {
  if (!plane.given()) return plane;
  const bool flags = plane.dtype == Dtype::boolean;
  const std::size_t bytes = flags ? 1 : sizeof(double);
  const auto copy = std::make_shared<std::vector<std::byte>>(
      rows.size() * static_cast<std::size_t>(keys) * bytes);
  std::byte* to = copy->data();
  for (const std::int64_t t : rows) {
    for (std::int64_t key = 0; key < keys; ++key, to += bytes) {
      if (flags) {
        *to = boolean_at(plane, {b, t, key}) ? std::byte{1} : std::byte{0};
      } else {
        const double value = element<double>(plane, {b, t, key});
        std::memcpy(to, &value, sizeof value);
      }
    }
  }
  StoredTensor cut;
  cut.name = plane.name;
  cut.dtype = flags ? Dtype::boolean : Dtype::f64;
  cut.data = copy->data();
  cut.owner = copy;
  cut.shape = {1, static_cast<std::int64_t>(rows.size()), keys};
  cut.stride = row_major(cut.shape);
  cut.present = true;
  return cut;
}
StoredTensor cut_flags(const StoredTensor& flags, std::int64_t b,
                       std::span<const std::int64_t> rows) {
  if (!flags.given()) return flags;
  StoredTensor plane = with_axis(flags, 2);
  plane = cut_plane(plane, b, rows, 1);
  plane.shape.pop_back();
  plane.stride.pop_back();
  return plane;
}

void check_steps(const Inputs& in, const Options& options, const Run& run) {
  const std::string where = run.schedule.prefill > 0 ? "schedule.prefill" : "schedule.step";
  if (options.loss)
    throw Error(where, "a call after another with option loss", "loss null: calls have no loss");
  if (!options.mask.causal)
    throw Error(where, "a call after another with mask.causal false", "a causal mask");
  refuse_given(in, where);
}

// The first `prefill` tokens in one call, then `step` at a time.
template <class T> Outputs<T> in_calls(const Inputs& in, const Options& options, const Run& run) {
  check_steps(in, options, run);
  Sizes sizes;
  Inputs named = in;
  if (in.mask.row_index.given()) sizes.set("T", in.mask.row_index.size(0), in.mask.row_index.name);
  sizes.set("dn", options.projection.nope_dim.value_or(0), "option nope_dim");
  sizes.set("dr", options.projection.rope_dim.value_or(0), "option rope_dim");
  sizes.set("dv", options.projection.v_dim.value_or(0), "option v_dim");
  sizes.unify(named.projection.x, "B S E");
  if (!in.mask.row_index.given()) sizes.set("T", sizes["S"], "S, without in.row_index");
  sizes.unify_all(named);
  const Visibility seen(options.mask, in.mask, sizes, Blocks{});
  const std::int64_t tokens = sizes["S"];
  const RowNotes notes = seen.notes(RowNote::blank);
  Options inner =
      options;  // whole sequences of segment ids are kept, so documents are said, not inferred
  inner.mask.documents =
      options.mask.documents.value_or(in.mask.segment_ids.given() || in.mask.cu_seqlens.given());
  inner.mask.query_offset.reset();
  Run call = run;
  call.schedule.prefill = call.schedule.step = 0;
  sizes.set("K", tokens, "S");
  Outputs<T> whole = whole_outputs<T>(sizes, options, run);
  for (std::int64_t b = 0; b < sizes["B"]; ++b) {
    Cache<T> cache;
    cache.kv_latent = Array<T>({1, tokens, sizes["Rkv"]});
    cache.k_pe = Array<T>({1, tokens, sizes["dr"]});
    if (options.indexer) cache.index_k = Array<T>({1, tokens, sizes["e"]});
    while (cache.length < tokens) {
      const std::int64_t first = cache.length;
      std::int64_t count =
          first == 0 && run.schedule.prefill > 0 ? run.schedule.prefill : run.schedule.step;
      count = count == 0 ? tokens - first : std::min(count, tokens - first);
      NewTokens now;
      now.x = at_first(in.projection.x, b);
      now.x = at_rows(now.x, first, count);
      const auto from = notes.begin() + b * tokens + first;
      now.x.notes = std::make_shared<const RowNotes>(from, from + count);
      std::vector<std::int64_t> rows;
      std::vector<std::int32_t> standing;
      for (std::int64_t s = first; s < first + count; ++s) {
        now.positions.push_back(static_cast<std::int32_t>(seen.position(b, s)));
        now.segments.push_back(static_cast<std::int32_t>(seen.segment(b, s)));
      }
      for (std::int64_t t = 0; t < seen.rows(); ++t) {
        if (seen.row_token(t) < first || seen.row_token(t) >= first + count) continue;
        rows.push_back(t);
        standing.push_back(static_cast<std::int32_t>(seen.row_token(t)));
      }
      MaskInputs mask;
      mask.valid = cut_plane(in.mask.valid, b, rows, first + count);
      mask.mask = cut_plane(in.mask.mask, b, rows, first + count);
      mask.row_mask = cut_flags(in.mask.row_mask, b, rows);
      const auto held = std::make_shared<const std::vector<std::int32_t>>(std::move(standing));
      mask.row_index.name = "row_index";
      mask.row_index.data = reinterpret_cast<const std::byte*>(held->data());
      mask.row_index.owner = held;
      mask.row_index.dtype = Dtype::i32;
      mask.row_index.shape = {static_cast<std::int64_t>(held->size())};
      mask.row_index.stride = {1};
      mask.row_index.present = true;
      Outputs<T> part = advance<T>(in, inner, call, now, mask, cache);
      place_outputs<T>(part, whole, b, rows, first, first);
    }
  }
  return whole;
}

}  // namespace

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  if (run.schedule.prefill > 0 || run.schedule.step > 0) return in_calls<T>(in, options, run);
  return Layer<T>(in, options, run).forward();
}

template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangents) {
  if (run.schedule.prefill > 0 || run.schedule.step > 0) {
    throw Error(run.schedule.prefill > 0 ? "schedule.prefill" : "schedule.step", "a backward pass",
                "a forward pass: calls have no gradients");
  }
  return Layer<T>(in, options, run).backward(cotangents);
}

template Outputs<f32> Op::forward<f32>(const Inputs&, const Options&, const Run&);
template Outputs<f64> Op::forward<f64>(const Inputs&, const Options&, const Run&);
template Outputs<f192> Op::forward<f192>(const Inputs&, const Options&, const Run&);
template Outputs<mp50> Op::forward<mp50>(const Inputs&, const Options&, const Run&);
template Outputs<mp100> Op::forward<mp100>(const Inputs&, const Options&, const Run&);
template Gradients<f32> Op::backward<f32>(const Inputs&, const Options&, const Run&,
                                          const Cotangents&);
template Gradients<f64> Op::backward<f64>(const Inputs&, const Options&, const Run&,
                                          const Cotangents&);
template Gradients<f192> Op::backward<f192>(const Inputs&, const Options&, const Run&,
                                            const Cotangents&);
template Gradients<mp50> Op::backward<mp50>(const Inputs&, const Options&, const Run&,
                                            const Cotangents&);
template Gradients<mp100> Op::backward<mp100>(const Inputs&, const Options&, const Run&,
                                              const Cotangents&);

}  // namespace plumbline::mla_layer
