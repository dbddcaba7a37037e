#include "reference/mla_attention/problem.hpp"

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

template attention::Outputs<f32> Op::forward<f32>(const Inputs&, const Options&, const Run&);
template attention::Outputs<f64> Op::forward<f64>(const Inputs&, const Options&, const Run&);
template attention::Outputs<f192> Op::forward<f192>(const Inputs&, const Options&, const Run&);
template attention::Outputs<mp50> Op::forward<mp50>(const Inputs&, const Options&, const Run&);
template attention::Outputs<mp100> Op::forward<mp100>(const Inputs&, const Options&, const Run&);

}  // namespace plumbline::mla_attention
