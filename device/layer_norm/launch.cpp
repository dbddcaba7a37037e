#include "device/layer_norm/launch.hpp"

#include "device/layer_norm/naive.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t layer_norm_backward_workspace(const LayerNormBackward& args) {
  const bool sums = args.dweight || args.dbias;
  return sizeof(float) *
         static_cast<std::size_t>(
             2 * args.of.rows + (sums ? host::column_sum_floats(args.of.rows, args.of.width) : 0));
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const LayerNorm& p) {
  if (p.rows < 0 || p.width < 1)
    stream.fail("layer_norm: rows < 0 or width < 1");
  else if (!(p.eps >= 0))
    stream.fail("layer_norm: eps < 0");
  else if (!p.x)
    stream.fail("layer_norm: no x");
  return !stream.failed();
}
template <class T> View<const T, 2> rows_of(const void* x, const LayerNorm& p) {
  return {static_cast<const T*>(x), {p.rows, p.width}};
}
template <class T> View<const T, 1> vector_of(const void* x, const LayerNorm& p) {
  if (!x) return {};
  return {static_cast<const T*>(x), {p.width}};
}

template <class T> void forward(Stream& stream, const LayerNorm& p) {
  launch<LayerForward<T>>(stream, {row_blocks(p.rows)},
                          {rows_of<T>(p.x, p), vector_of<T>(p.weight, p), vector_of<T>(p.bias, p),
                           View<T, 2>(static_cast<T*>(p.y), {p.rows, p.width}), p.eps});
}
template <class T> void backward(Stream& stream, const LayerNormBackward& args) {
  const LayerNorm& p = args.of;
  const View<const T, 2> x = rows_of<T>(p.x, p), dy = rows_of<T>(args.dy, p);
  float* const parts = args.workspace + 2 * p.rows;
  launch<LayerInputGradient<T>>(
      stream, {row_blocks(p.rows)},
      {x, vector_of<T>(p.weight, p), dy, View<float, 2>(args.dx, {p.rows, p.width}),
       View<float, 2>(args.workspace, {p.rows, 2}), p.eps});
  if (args.dweight)
    sum_columns<LayerWeightTerms<T>>(stream,
                                     {x, dy, View<const float, 2>(args.workspace, {p.rows, 2}), {}},
                                     p.rows, p.width, parts, args.dweight);
  if (args.dbias)
    sum_columns<LayerBiasTerms<T>>(stream, {dy, {}}, p.rows, p.width, parts, args.dbias);
}

}  // namespace

void layer_norm(Stream& stream, const LayerNorm& args) {
  if (!valid(stream, args)) return;
  if (!args.y) return stream.fail("layer_norm: no y");
  args.type == Type::bf16 ? forward<bf16>(stream, args) : forward<float>(stream, args);
}
void layer_norm_backward(Stream& stream, const LayerNormBackward& args) {
  if (!valid(stream, args.of)) return;
  if (!args.dy || !args.dx || !args.workspace)
    return stream.fail("layer_norm: no dy, dx or workspace");
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
