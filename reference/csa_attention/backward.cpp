#include "reference/csa_attention/problem.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_attention {

template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangents) {
  check(options);
  return Problem<T>(in, options).backward(run, cotangents);
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_attention
