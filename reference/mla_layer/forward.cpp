#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/mla_layer/cache.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_layer {
namespace {

void check_steps(const Inputs& in, const Options& options, const Run& run) {
  layer::check_calls(run.schedule, options.loss.has_value(), options.mask);
  layer::refuse_given(
      {&in.given_query, &in.given_key, &in.given_value, &in.projection.given_q_latent,
       &in.projection.given_kv_latent, &in.projection.given_k_pe, &in.given_attention_output,
       &in.given_attention_lse, &in.given_attention_max_logit, &in.indexer.given.index_q,
       &in.indexer.given.index_k, &in.indexer.given.index_w, &in.indexer.given.scores,
       &in.indexer.given.indices, &in.indexer.given.selected, &in.given_log_mass,
       &in.given_head_sum, &in.given_target},
      run.schedule.prefill > 0 ? "schedule.prefill" : "schedule.step");
}

Sizes sizes_of(const Inputs& in, const Options& options) {
  Sizes sizes;
  Inputs named = in;
  if (in.mask.row_index.given()) sizes.set("T", in.mask.row_index.size(0), in.mask.row_index.name);
  sizes.set("dn", options.projection.nope_dim.value_or(0), "option nope_dim");
  sizes.set("dr", options.projection.rope_dim.value_or(0), "option rope_dim");
  sizes.set("dv", options.projection.v_dim.value_or(0), "option v_dim");
  sizes.unify(named.projection.x, "B S E");
  if (!in.mask.row_index.given()) sizes.set("T", sizes["S"], "S, without in.row_index");
  sizes.unify_all(named);
  return sizes;
}

// The first `prefill` tokens in one call, then `step` at a time.
template <class T> Outputs<T> in_calls(const Inputs& in, const Options& options, const Run& run) {
  check_steps(in, options, run);
  Sizes sizes = sizes_of(in, options);
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
  Cache<T> cache;
  layer::for_each_call(
      run.schedule, in.projection.x, in.mask, seen, notes, [](std::int64_t n) { return n; },
      [&](const layer::Call& now) {
        if (now.first == 0) {
          cache = {};
          cache.kv_latent = Array<T>({1, tokens, sizes["Rkv"]});
          cache.k_pe = Array<T>({1, tokens, sizes["dr"]});
          if (options.indexer) cache.index_k = Array<T>({1, tokens, sizes["e"]});
        }
        Outputs<T> part = advance<T>(in, inner, call, now.tokens, now.mask, cache);
        layer::place_outputs<T>(part, whole, {now.b, now.rows, now.first, now.first});
      });
  return whole;
}

}  // namespace

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  Sizes sizes = sizes_of(in, options);
  return {Visibility(options.mask, in.mask, sizes, Blocks{}),
          0,
          {},
          in.indexer.given.selected,
          in.indexer.given.indices};
}

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

#define INSTANTIATE(T)                                                             \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);   \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_layer
