#include "reference/layer_norm/layer_norm.hpp"

#include "reference/layer_norm/layer_row.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::layer_norm {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const NormOptions& options, const Run& run) {
  check_eps(options.eps);
  const LastAxis axis(in.x);
  axis.check_vector(in.weight, in.x);
  axis.check_vector(in.bias, in.x);
  const auto width = static_cast<std::size_t>(axis.width);
  Buffer<Exact<T>> weight(in.weight.given() ? width : 0), bias(in.bias.given() ? width : 0);
  if (in.weight.given()) fetch<Exact<T>>(in.weight, {}, weight);
  if (in.bias.given()) fetch<Exact<T>>(in.bias, {}, bias);
  Outputs<T> out;
  out.y = Array<T>(in.x.shape);
  for_each_row(run, axis.rows, [&](std::int64_t row) {
    const std::span<T> y =
        std::span<T>(out.y.values).subspan(static_cast<std::size_t>(row) * width, width);
    fetch_rows<T>(in.x, row, 1, y);
    const LayerMoments<T> moments(y, options.eps,
                                  [&] { return in.x.name + to_string(lead_of(in.x, row)); });
    moments.scale(y, weight, bias, y);
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const NormOptions&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::layer_norm
