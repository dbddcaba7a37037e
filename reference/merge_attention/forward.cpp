#include "reference/merge_attention/parts.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::merge_attention {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  Sizes sizes;
  const Merge<T> merge(in, options, sizes);
  Outputs<T> out;
  out.output = Array<T>(sizes.shape("B T H D"));
  out.lse = Array<T>(sizes.shape("B T H"));
  for_each_row(run, merge.rows, [&](std::int64_t i) {
    const std::int64_t b = i / merge.length, t = i % merge.length;
    Buffer<T> values(static_cast<std::size_t>(merge.width));
    for (std::int64_t h = 0; h < merge.heads; ++h) {
      const Live<T> live(merge, b, t, h);
      if (live.part.empty()) {
        out.lse({b, t, h}) = merge.rule.empty(live.sink);
        continue;
      }
      const std::span<T> output = out.output.row({b, t, h}, merge.width);
      for (std::size_t n = 0; n < live.part.size(); ++n) {
        fetch<T>(in.outputs, {live.part[n], b, t, h}, values);
        const T weight = live.all.weight(live.lse[n]);
        for (std::size_t d = 0; d < values.size(); ++d) output[d] += weight * values[d];
      }
      for (T& x : output) x = leave(round_at(Point::output, x));
      out.lse({b, t, h}) = leave(merge.rule.reported(live.log_sum_exp(merge.rule.counts_sink())));
    }
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::merge_attention
