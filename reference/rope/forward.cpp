#include "reference/rope/rope.hpp"

namespace plumbline::rope {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  Sizes sizes;
  Inputs named = in;
  sizes.unify_all(named);
  const std::int64_t tokens = sizes["S"], heads = sizes["H"], width = sizes["D"];
  const Rotation<T> rotation(options.rope, width);
  Outputs<T> out;
  out.y = Array<T>(in.x.shape);
  for_each_row(run, sizes["B"] * tokens, [&](std::int64_t row) {
    const std::int64_t b = row / tokens, s = row % tokens;
    const auto turn = rotation.at(in.positions.given() ? integer_at(in.positions, {b, s}) : s);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::span<T> y = out.y.row({b, s, h}, width);
      fetch<T>(in.x, {b, s, h}, y);
      rotation.apply(turn, y);
    }
  });
  return out;
}

template Outputs<f32> Op::forward<f32>(const Inputs&, const Options&, const Run&);
template Outputs<f64> Op::forward<f64>(const Inputs&, const Options&, const Run&);
template Outputs<f192> Op::forward<f192>(const Inputs&, const Options&, const Run&);
template Outputs<mp50> Op::forward<mp50>(const Inputs&, const Options&, const Run&);
template Outputs<mp100> Op::forward<mp100>(const Inputs&, const Options&, const Run&);

}  // namespace plumbline::rope
