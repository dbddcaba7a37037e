#include "reference/csa_layer/state.hpp"
#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {
namespace {

void check_steps(const Inputs& in, const Options& options, const Schedule& schedule) {
  const std::string where = schedule.prefill > 0 ? "schedule.prefill" : "schedule.step";
  layer::check_calls(schedule, options.loss.has_value(), options.mask);
  if (options.blocks() && options.grid == Grid::document) {
    throw Error(where, "calls with option grid document",
                "grid physical: the state of a server cuts blocks from token 0");
  }
  layer::refuse_given(
      {&in.given_query, &in.given_kv, &in.given_compressed, &in.given_q_latent,
       &in.given_attention_output, &in.given_attention_lse, &in.given_attention_max_logit,
       &in.indexer.given.index_q, &in.indexer.given.index_k, &in.indexer.given.index_w,
       &in.indexer.given.scores, &in.indexer.given.indices, &in.indexer.given.selected,
       &in.given_log_mass, &in.given_head_sum, &in.given_target},
      where);
}

// The first `prefill` tokens in one call, then `step` at a time.
template <class T>
Outputs<T> in_calls(const Inputs& inputs, const Options& options, const Run& run) {
  check(inputs, options);
  check_steps(inputs, options, run.schedule);
  Inputs in = inputs;
  const Sizes sizes = sizes_of(in, options);
  Sizes grid = sizes;
  const Visibility seen(options.mask, in.mask, grid, blocks_of(options));
  Options inner = options;  // whole sequences of segment ids are kept, so documents are said
  inner.mask.documents =
      options.mask.documents.value_or(in.mask.segment_ids.given() || in.mask.cu_seqlens.given());
  inner.mask.query_offset.reset();
  Run call = run;
  call.schedule.prefill = call.schedule.step = 0;
  Outputs<T> whole = whole_outputs<T>(sizes, options, run);
  const RowNotes notes = Layer<T>(in, options, run).reading();
  State<T> state;
  const std::int64_t m = options.m.value_or(1);
  layer::for_each_call(
      run.schedule, in.x, in.mask, seen, notes, [m](std::int64_t n) { return n / m; },
      [&](const layer::Call& now) {
        if (now.first == 0) state = empty_state<T>(sizes, options, sizes["S"]);
        Outputs<T> part = advance<T>(in, inner, call, now.tokens, now.mask, state);
        layer::place_outputs<T>(part, whole, {now.b, now.rows, now.first, now.first});
      });
  return whole;
}

}  // namespace

MaskView Op::mask_view(const Inputs& inputs, const Options& options) {
  check(inputs, options);
  Inputs in = inputs;
  Sizes sizes = sizes_of(in, options);
  return {Visibility(options.mask, in.mask, sizes, blocks_of(options)),
          options.blocks() ? *options.m : 0, options.window, in.indexer.given.selected,
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

}  // namespace plumbline::csa_layer
