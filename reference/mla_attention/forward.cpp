#include "reference/mla_attention/problem.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_attention {

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
