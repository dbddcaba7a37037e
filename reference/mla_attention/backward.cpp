#include <algorithm>

#include "reference/mla_attention/problem.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_attention {

template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangents) {
  Problem<T> problem(in, options, run);
  if (cotangents.output.given()) problem.sizes.unify(cotangents.output, "B T H Dv");
  if (cotangents.lse.given()) problem.sizes.unify(cotangents.lse, "B T H");

  Gradients<T> grad;
  const auto array = [](const StoredTensor& tensor, Array<T>& gradient) {
    if (tensor.given()) gradient = Array<T>(tensor.shape);
  };
  array(in.query, grad.query);
  array(in.key, grad.key);
  array(in.value, grad.value);
  array(in.kv_latent, grad.kv_latent);
  array(in.k_pe, grad.k_pe);
  array(in.wkv_b, grad.wkv_b);
  array(in.bkv_b, grad.bkv_b);
  array(in.sink, grad.sink);
  attention::Targets<T> targets{&grad.query, in.sink.given() ? &grad.sink : nullptr, {}};
  const WeightGradients<T> weights{&grad.wkv_b, in.bkv_b.given() ? &grad.bkv_b : nullptr};
  const std::int64_t row_count = problem.visibility.batch() * problem.visibility.rows();

  if (problem.form == Form::keys) {
    targets.keys = {&grad.key};
    if (in.value.given()) targets.keys.push_back(&grad.value);
    attention::backward(problem.setting, run, cotangents, targets);
  } else if (problem.form == Form::absorbed) {
    targets.keys = {&grad.kv_latent, &grad.k_pe};
    problem.absorbed->take_gradients(weights, row_count);
    attention::backward(problem.setting, run, cotangents, targets);
    problem.absorbed->fold();
  } else {
    Array<T> rows(problem.expanded->shape());
    targets.keys = {&rows, &grad.k_pe};
    attention::backward(problem.setting, run, cotangents, targets);
    problem.expanded->pull_back(rows, grad.kv_latent, weights, run);
    problem.count_bytes(run, 1 + std::max<std::int64_t>(1, shards_of(row_count)));
  }
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_attention
