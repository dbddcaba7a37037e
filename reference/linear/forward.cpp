#include "reference/linear/linear.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::linear {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  if (options.slice_bounds) refuse_quantised(in.weight, "option slice_bounds");
  Sizes sizes;
  Inputs named = in;
  sizes.unify_all(named);
  const Slice columns = columns_of(in.weight, options.slice_bounds, "option slice_bounds");
  const Contraction<T> product(in.weight, in.bias, columns);
  const std::int64_t width = sizes["I"];
  Outputs<T> out;
  out.y = Array<T>({sizes["n"], sizes["G"], columns[1] - columns[0]});
  for_each_block(run, sizes["n"], [&](std::int64_t first, std::int64_t last) {
    const std::int64_t rows = last - first;
    Buffer<T> x(static_cast<std::size_t>(rows * width));
    fetch_rows<T>(in.x, first, rows, x);
    product.apply(rows, x, out.y.row({first}, rows * product.outputs()));
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::linear
