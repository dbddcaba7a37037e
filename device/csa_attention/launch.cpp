#include "device/csa_attention/launch.hpp"

#include "device/csa_attention/fast.cuh"
#include "device/csa_attention/fast90.cuh"
#include "device/csa_attention/naive.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t csa_attention_backward_workspace(const AttentionBackward& args) {
  return sizeof(float) * static_cast<std::size_t>(host::attention_backward_floats(args));
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const Attention& p) {
  if (p.groups != 1)
    stream.fail("csa_attention: more than one key head");
  else if (p.near.value || p.far.value || p.width != p.value_width)
    stream.fail("csa_attention: keys that are not the values");
  else if (p.width > 512)
    stream.fail("csa_attention: more than 512 channels");
  return !stream.failed();
}

template <class T> void forward(Stream& stream, const Attention& p) {
  if (p.width <= 64) return attend<T, 64, true>(stream, p);
  if (p.width <= 128) return attend<T, 128, true>(stream, p);
  attend<T, 512, true>(stream, p);
}
template <class T> void backward(Stream& stream, const AttentionBackward& args) {
  if (args.of.width <= 64) return pull_back<T, 64, true>(stream, args);
  if (args.of.width <= 128) return pull_back<T, 128, true>(stream, args);
  pull_back<T, 512, true>(stream, args);
}

template <class Kernel> void forward_fast(Stream& stream, const Attention& p) {
  const std::int64_t n = p.batch * p.rows;
  launch<Kernel>(
      stream, {n, (p.heads + Kernel::heads - 1) / Kernel::heads},
      {views_of<bf16>(p), View<bf16, 3>(static_cast<bf16*>(p.output), {n, p.heads, p.width}),
       View<float, 2>(p.lse, {n, p.heads})});
}
bool valid_fast(Stream& stream, const Attention& p) {
  if (!valid_attention(stream, "csa_attention", p) || !valid(stream, p)) return false;
  if (p.type != Type::bf16 || p.width % 8 != 0)
    stream.fail("csa_attention fast: reads bf16 with channels in multiples of 8");
  else if (p.max_logit)
    stream.fail("csa_attention fast: writes no max_logit");
  return !stream.failed();
}

}  // namespace

void csa_attention_fast(Stream& stream, const Attention& args) {
  if (!valid_fast(stream, args)) return;
  args.width <= 128 ? forward_fast<CsaForward<128>>(stream, args)
                    : forward_fast<CsaForward<512>>(stream, args);
}

#if PLUMBLINE_SM90
void csa_attention_fast90(Stream& stream, const Attention& args) {
  if (!valid_fast(stream, args)) return;
  args.width <= 128 ? forward_fast<CsaForward90<128>>(stream, args)
                    : forward_fast<CsaForward90<512>>(stream, args);
}
#endif

void csa_attention(Stream& stream, const Attention& args) {
  if (!valid_attention(stream, "csa_attention", args) || !valid(stream, args)) return;
  args.type == Type::bf16 ? forward<bf16>(stream, args) : forward<float>(stream, args);
}

void csa_attention_backward(Stream& stream, const AttentionBackward& args) {
  if (!valid_attention(stream, "csa_attention", args) || !valid(stream, args.of)) return;
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
