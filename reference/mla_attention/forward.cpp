#include "reference/mla_attention/problem.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_attention {

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  Sizes sizes;
  check(in, options, Schedule{}, sizes);
  return {Visibility(options.mask, in.mask, sizes, Blocks{}, options.tokens),
          0,
          {},
          in.selected,
          in.indices};
}

template <class T>
attention::Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  const Problem<T> problem(in, options, run);
  attention::Outputs<T> out = attention::forward(problem.setting, run);
  problem.count_bytes(run, 1);
  return out;
}

#define INSTANTIATE(T) \
  template attention::Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_attention
