#include "reference/numeric/instantiate.hpp"
#include "reference/rope/rope.hpp"

namespace plumbline::rope {

// dx = transposed rotation of dy: no row of x is read, for the map is linear.
template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangent) {
  Sizes sizes;
  Inputs named = in;
  sizes.unify_all(named);
  if (cotangent.y.given()) sizes.unify(cotangent.y, "B S H D");
  const std::int64_t tokens = sizes["S"], heads = sizes["H"], width = sizes["D"];
  const Rotation<T> rotation(options.rope, width);
  Gradients<T> grad;
  grad.x = Array<T>(in.x.shape);
  if (!cotangent.y.given()) return grad;
  for_each_row(run, sizes["B"] * tokens, [&](std::int64_t row) {
    const std::int64_t b = row / tokens, s = row % tokens;
    const auto turn = rotation.at(in.positions.given() ? integer_at(in.positions, {b, s}) : s);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::span<T> dx = grad.x.row({b, s, h}, width);
      fetch<T>(cotangent.y, {b, s, h}, dx);
      rotation.pull_back(turn, dx);
    }
  });
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::rope
