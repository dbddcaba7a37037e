#include "device/rms_norm/launch.hpp"

#include "device/rms_norm/naive.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t rms_norm_backward_workspace(const RmsNormBackward& args) {
  const std::int64_t sums = args.dweight ? host::column_sum_floats(args.of.rows, args.of.width) : 0;
  return sizeof(float) * static_cast<std::size_t>(args.of.rows + sums);
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const RmsNorm& p) {
  if (p.rows < 0 || p.width < 1)
    stream.fail("rms_norm: rows < 0 or width < 1");
  else if (!(p.eps >= 0))
    stream.fail("rms_norm: eps < 0");
  else if (!p.x)
    stream.fail("rms_norm: no x");
  return !stream.failed();
}
template <class T> View<const T, 2> x_of(const RmsNorm& p) {
  return {static_cast<const T*>(p.x), {p.rows, p.width}};
}
template <class T> View<const T, 1> weight_of(const RmsNorm& p) {
  if (!p.weight) return {};
  return {static_cast<const T*>(p.weight), {p.width}};
}

template <class T> void forward(Stream& stream, const RmsNorm& p) {
  launch<RmsForward<T, T, T>>(
      stream, {row_blocks(p.rows)},
      {x_of<T>(p), weight_of<T>(p), View<T, 2>(static_cast<T*>(p.y), {p.rows, p.width}), p.eps});
}
template <class T> void backward(Stream& stream, const RmsNormBackward& args) {
  const RmsNorm& p = args.of;
  const View<const T, 2> dy(static_cast<const T*>(args.dy), {p.rows, p.width});
  launch<RmsInputGradient<T, T, T>>(
      stream, {row_blocks(p.rows)},
      {x_of<T>(p), weight_of<T>(p), dy, View<float, 2>(args.dx, {p.rows, p.width}),
       View<float, 1>(args.workspace, {p.rows}), p.eps});
  if (args.dweight)
    sum_columns<RmsWeightTerms<T, T>>(
        stream, {x_of<T>(p), dy, View<const float, 1>(args.workspace, {p.rows}), {}}, p.rows,
        p.width, args.workspace + p.rows, args.dweight);
}

}  // namespace

void rms_norm(Stream& stream, const RmsNorm& args) {
  if (!valid(stream, args)) return;
  if (!args.y) return stream.fail("rms_norm: no y");
  args.type == Type::bf16 ? forward<bf16>(stream, args) : forward<float>(stream, args);
}
void rms_norm_backward(Stream& stream, const RmsNormBackward& args) {
  if (!valid(stream, args.of)) return;
  if (!args.dy || !args.dx || !args.workspace)
    return stream.fail("rms_norm: no dy, dx or workspace");
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
