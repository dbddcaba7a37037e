#include "reference/rms_norm/rms_norm.hpp"

#include "reference/linear/weight_sum.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/rms_norm/rms_row.hpp"

namespace plumbline::rms_norm {

template <class T> Gradients<T> Op::backward(const Inputs& in, const NormOptions& options,
                                             const Run& run, const Cotangents& cotangent) {
  check_eps(options.eps);
  const LastAxis axis(in.x);
  axis.check_vector(in.weight, in.x);
  axis.check_same(cotangent.y, in.x);
  const auto width = static_cast<std::size_t>(axis.width);
  Buffer<Exact<T>> weight(in.weight.given() ? width : 0);
  if (in.weight.given()) fetch<Exact<T>>(in.weight, {}, weight);
  Gradients<T> grad;
  grad.x = Array<T>(in.x.shape);
  WeightSum<T> dweight(in.weight, grad.weight, axis.rows);
  for_each_shard(run, axis.rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    Buffer<T> x(width), dy(width);
    for (std::int64_t row = begin; row < end; ++row) {
      fetch_rows<T>(in.x, row, 1, x);
      fetch_rows<T>(cotangent.y, row, 1, dy);
      const std::span<T> dx =
          std::span<T>(grad.x.values).subspan(static_cast<std::size_t>(row) * width, width);
      const T factor =
          rms_factor<T>(x, options.eps, [&] { return in.x.name + to_string(lead_of(in.x, row)); });
      rms_pull_back<T>(x, factor, weight, dy, dx, dweight.values(shard));
    }
  });
  dweight.fold();
  return grad;
}

#define INSTANTIATE(T)                                                                 \
  template Gradients<T> Op::backward<T>(const Inputs&, const NormOptions&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::rms_norm
