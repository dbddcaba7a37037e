#include "device/linear/launch.hpp"

#include "device/linear/naive.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t linear_backward_workspace(const LinearBackward& args) {
  if (args.dbias == nullptr) return 0;
  return sizeof(float) * static_cast<std::size_t>(
                             host::column_sum_floats(args.of.rows, args.of.groups * args.of.width));
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const Linear& p) {
  if (p.rows < 0 || p.inputs < 0 || p.groups < 0 || p.width < 0)
    stream.fail("linear: a size below 0");
  else if (p.begin < 0 || p.begin > p.end || p.end > p.width)
    stream.fail("linear: a slice outside the weight's columns");
  else if (!p.x || !p.weight)
    stream.fail("linear: no x or no weight");
  return !stream.failed();
}

template <class T> View<const T, 3> weight_of(const Linear& p) {
  return {static_cast<const T*>(p.weight), {p.inputs, p.groups, p.width}};
}
template <class T> View<const T, 2> x_of(const Linear& p) {
  return {static_cast<const T*>(p.x), {p.rows, p.inputs}};
}
Slice slice_of(const Linear& p) { return {p.begin, p.end - p.begin}; }

template <class T> void forward(Stream& stream, const Linear& p) {
  View<const T, 2> bias;
  if (p.bias) bias = View<const T, 2>(static_cast<const T*>(p.bias), {p.groups, p.width});
  const std::int64_t width = p.end - p.begin;
  launch_product<LinearTerms<T, T>>(
      stream,
      {x_of<T>(p), weight_of<T>(p), bias,
       View<T, 3>(static_cast<T*>(p.y), {p.rows, p.groups, width}), slice_of(p)},
      p.rows, p.groups * width);
}

template <class T> void backward(Stream& stream, const LinearBackward& args) {
  const Linear& p = args.of;
  const View<const T, 3> dy(static_cast<const T*>(args.dy), {p.rows, p.groups, p.end - p.begin});
  launch_product<LinearInputTerms<T>>(
      stream, {dy, weight_of<T>(p), View<float, 2>(args.dx, {p.rows, p.inputs}), slice_of(p)},
      p.rows, p.inputs);
  launch_product<LinearWeightTerms<T>>(
      stream,
      {x_of<T>(p), dy, View<float, 3>(args.dweight, {p.inputs, p.groups, p.width}), slice_of(p)},
      p.inputs, p.groups * p.width);
  if (args.dbias)
    sum_columns<LinearBiasTerms<T>>(stream, {dy, p.width, slice_of(p), {}}, p.rows,
                                    p.groups * p.width, args.workspace, args.dbias);
}

}  // namespace

void linear(Stream& stream, const Linear& args) {
  if (!valid(stream, args)) return;
  if (!args.y) return stream.fail("linear: no y");
  args.type == Type::bf16 ? forward<bf16>(stream, args) : forward<float>(stream, args);
}

void linear_backward(Stream& stream, const LinearBackward& args) {
  if (!valid(stream, args.of)) return;
  if (!args.dy || !args.dx || !args.dweight) return stream.fail("linear: no dy, dx or dweight");
  if (args.dbias && !args.workspace) return stream.fail("linear: no workspace for dbias");
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
