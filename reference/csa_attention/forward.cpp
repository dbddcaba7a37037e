#include "reference/csa_attention/problem.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_attention {

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  check(options);
  const Problem<f64> problem(in, options);
  return {problem.visibility, *options.m, options.window, in.selected, in.indices};
}

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  check(options);
  return Problem<T>(in, options).forward(run);
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_attention
