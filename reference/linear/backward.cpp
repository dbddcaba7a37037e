#include "reference/linear/linear.hpp"
#include "reference/linear/rows.hpp"
#include "reference/linear/weight_sum.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::linear {

// dx[n,i] = Σ_(g,o) dy[n,g,o]·W[i,g,o], dW[i,g,o] = Σ_n x[n,i]·dy[n,g,o], dbias[g,o] = Σ_n
// dy[n,g,o], o in the slice.
template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangent) {
  if (options.slice_bounds) refuse_quantised(in.weight, "option slice_bounds");
  Sizes sizes;
  Inputs named = in;
  sizes.unify_all(named);
  const Slice columns = columns_of(in.weight, options.slice_bounds, "option slice_bounds");
  if (cotangent.y.given()) {
    Sizes result;
    result.set("n", sizes["n"], in.x.name);
    result.set("G", sizes["G"], in.weight.name);
    result.set("O", columns[1] - columns[0],
               options.slice_bounds ? "option slice_bounds" : in.weight.name);
    result.unify(cotangent.y, "n G O");
  }
  const Contraction<T> product(in.weight, in.bias, columns);
  const std::int64_t width = sizes["I"];
  Gradients<T> grad;
  grad.x = Array<T>(in.x.shape);
  WeightSum<T> dweight(in.weight, grad.weight, sizes["n"]), dbias(in.bias, grad.bias, sizes["n"]);
  for_each_shard(run, sizes["n"], [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    in_chunks(end - begin, rows_of_a_block, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t first = begin + from, rows = to - from;
      Buffer<T> x(static_cast<std::size_t>(rows * width)),
          dy(static_cast<std::size_t>(rows * product.outputs()));
      fetch_rows<T>(in.x, first, rows, x);
      fetch_rows<T>(cotangent.y, first * sizes["G"], rows * sizes["G"], dy);
      product.pull_back_input(rows, dy, grad.x.row({first}, rows * width));
      product.pull_back_weight(rows, x, dy, dweight.at(shard));
      product.pull_back_bias(rows, dy, dbias.at(shard));
    });
  });
  dweight.fold();
  dbias.fold();
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::linear
