#include "reference/merge_attention/parts.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/operation/shards.hpp"

namespace plumbline::merge_attention {
namespace {

// d output_p = w_p g,  d L_p = w_p (g·output_p − g·output) + l (w_p, or w_p among the parts),  L_p
// = ln(base) lse_p, d sink = w_sink (l − g·output), l only where lse counts it; w = exp(L − ln(Σ
// exp L + exp sink)).
template <class T> void pull_back(const Merge<T>& merge, const Cotangents& cotangents,
                                  std::int64_t b, std::int64_t t, std::int64_t h,
                                  Gradients<T>& grad, Array<T>* sink_gradient) {
  const Live<T> live(merge, b, t, h);
  const bool counts = merge.rule.counts_sink();
  T l(0);  // cotangent of the natural lse, 0 where it is a constant
  const auto read_lse_cotangent = [&] {
    if (cotangents.lse.given()) l = merge.rule.pull_back(fetch_one<T>(cotangents.lse, {b, t, h}));
  };
  if (live.part.empty()) {
    if (sink_gradient == nullptr || !merge.rule.empty_is_sink(live.sink)) return;
    read_lse_cotangent();
    sink_gradient->values[static_cast<std::size_t>(h)] += leave(l);
    return;
  }
  const T lse = live.log_sum_exp(counts);
  if (!(lse == infinity<T>() || lse == -infinity<T>())) read_lse_cotangent();

  const auto width = static_cast<std::size_t>(merge.width);
  Buffer<T> g(width), values(width), products(live.part.size());
  if (cotangents.output.given()) fetch<T>(cotangents.output, {b, t, h}, g);
  T delta(0);
  for (std::size_t n = 0; n < live.part.size(); ++n) {
    fetch<T>(merge.in.outputs, {live.part[n], b, t, h}, values);
    products[n] = dot<T>(g, values);
    delta += live.all.weight_again(live.lse[n]) * products[n];
  }
  delta = share(Symbol::delta, round_at(Point::delta, delta));
  for (std::size_t n = 0; n < live.part.size(); ++n) {
    const T w = live.all.weight_again(live.lse[n]);
    const std::span<T> to = grad.outputs.row({live.part[n], b, t, h}, merge.width);
    for (std::size_t d = 0; d < width; ++d) to[d] = leave(T(w * g[d]));
    T dl = w * (products[n] - delta);
    if (!(l == T(0))) dl += l * (counts ? w : live.keys.weight_again(live.lse[n]));
    grad.lse({live.part[n], b, t, h}) = leave(merge.rule.natural(dl));  // d L / d lse = ln(base)
  }
  if (sink_gradient == nullptr || live.sink == infinity<T>() || live.sink == -infinity<T>()) return;
  T d = -delta;
  if (counts) d += l;
  sink_gradient->values[static_cast<std::size_t>(h)] += leave(T(live.all.weight_again(live.sink) * d));
}

}  // namespace

template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangents) {
  Sizes sizes;
  const Merge<T> merge(in, options, sizes);
  if (cotangents.output.given()) sizes.unify(cotangents.output, "B T H D");
  if (cotangents.lse.given()) sizes.unify(cotangents.lse, "B T H");
  Gradients<T> grad;
  grad.outputs = Array<T>(in.outputs.shape);
  grad.lse = Array<T>(in.lse.shape);
  std::optional<Shards<T>> sink;
  if (in.sink.given()) {
    grad.sink = Array<T>(in.sink.shape);
    sink.emplace(grad.sink, merge.rows);
  }
  for_each_shard(run, merge.rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t h = 0; h < merge.heads; ++h) {
        pull_back(merge, cotangents, i / merge.length, i % merge.length, h, grad,
                  sink ? &(*sink)[shard] : nullptr);
      }
    }
  });
  if (sink) sink->fold();
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::merge_attention
