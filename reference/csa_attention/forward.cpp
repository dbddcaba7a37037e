#include "reference/csa_attention/problem.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_attention {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  check(options);
  return Problem<T>(in, options).forward(run);
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_attention
