#include "reference/csa_attention/problem.hpp"

namespace plumbline::csa_attention {

template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangents) {
  check(options);
  return Problem<T>(in, options).backward(run, cotangents);
}

template Gradients<f32> Op::backward<f32>(const Inputs&, const Options&, const Run&,
                                          const Cotangents&);
template Gradients<f64> Op::backward<f64>(const Inputs&, const Options&, const Run&,
                                          const Cotangents&);
template Gradients<f192> Op::backward<f192>(const Inputs&, const Options&, const Run&,
                                            const Cotangents&);
template Gradients<mp50> Op::backward<mp50>(const Inputs&, const Options&, const Run&,
                                            const Cotangents&);
template Gradients<mp100> Op::backward<mp100>(const Inputs&, const Options&, const Run&,
                                              const Cotangents&);

}  // namespace plumbline::csa_attention
