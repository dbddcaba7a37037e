#include "reference/numeric/instantiate.hpp"
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

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::rope
