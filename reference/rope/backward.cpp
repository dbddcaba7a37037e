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

}  // namespace plumbline::rope
