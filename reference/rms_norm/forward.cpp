#include "reference/rms_norm/rms_norm.hpp"

#include "reference/numeric/instantiate.hpp"
#include "reference/rms_norm/rms_row.hpp"

namespace plumbline::rms_norm {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const NormOptions& options, const Run& run) {
  check_eps(options.eps);
  const LastAxis axis(in.x);
  axis.check_vector(in.weight, in.x);
  const auto width = static_cast<std::size_t>(axis.width);
  Buffer<Exact<T>> weight(in.weight.given() ? width : 0);
  if (in.weight.given()) fetch<Exact<T>>(in.weight, {}, weight);
  Outputs<T> out;
  out.y = Array<T>(in.x.shape);
  for_each_row(run, axis.rows, [&](std::int64_t row) {
    const std::span<T> y =
        std::span<T>(out.y.values).subspan(static_cast<std::size_t>(row) * width, width);
    fetch_rows<T>(in.x, row, 1, y);
    const T factor =
        rms_factor<T>(y, options.eps, [&] { return in.x.name + to_string(lead_of(in.x, row)); });
    rms_scale<T>(y, factor, weight, y);
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const NormOptions&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::rms_norm
