#include "reference/csa_attention/problem.hpp"

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

template Outputs<f32> Op::forward<f32>(const Inputs&, const Options&, const Run&);
template Outputs<f64> Op::forward<f64>(const Inputs&, const Options&, const Run&);
template Outputs<f192> Op::forward<f192>(const Inputs&, const Options&, const Run&);
template Outputs<mp50> Op::forward<mp50>(const Inputs&, const Options&, const Run&);
template Outputs<mp100> Op::forward<mp100>(const Inputs&, const Options&, const Run&);

}  // namespace plumbline::csa_attention
