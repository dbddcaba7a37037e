#include "device/mla_attention/launch.hpp"

#include "device/mla_attention/naive.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t mla_attention_backward_workspace(const AttentionBackward& args) {
  return sizeof(float) * static_cast<std::size_t>(host::attention_backward_floats(args));
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool apart(const Attention& p) { return p.near.value || p.far.value; }
std::int64_t widest(const Attention& p) {
  return p.width > p.value_width ? p.width : p.value_width;
}

bool valid(Stream& stream, const Attention& p) {
  if (widest(p) > (apart(p) ? 256 : 576))
    stream.fail("mla_attention: more than 256 channels, or 576 with values in keys");
  return !stream.failed();
}

template <class T> void forward(Stream& stream, const Attention& p) {
  if (apart(p))
    return widest(p) <= 64 ? attend<T, 64, false>(stream, p) : attend<T, 256, false>(stream, p);
  widest(p) <= 64 ? attend<T, 64, true>(stream, p) : attend<T, 576, true>(stream, p);
}
template <class T> void backward(Stream& stream, const AttentionBackward& args) {
  const std::int64_t width = widest(args.of);
  if (apart(args.of))
    return width <= 64 ? pull_back<T, 64, false>(stream, args)
                       : pull_back<T, 256, false>(stream, args);
  width <= 64 ? pull_back<T, 64, true>(stream, args) : pull_back<T, 576, true>(stream, args);
}

}  // namespace

void mla_attention(Stream& stream, const Attention& args) {
  if (!valid_attention(stream, "mla_attention", args) || !valid(stream, args)) return;
  args.type == Type::bf16 ? forward<bf16>(stream, args) : forward<float>(stream, args);
}

void mla_attention_backward(Stream& stream, const AttentionBackward& args) {
  if (!valid_attention(stream, "mla_attention", args) || !valid(stream, args.of)) return;
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
