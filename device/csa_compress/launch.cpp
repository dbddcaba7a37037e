#include "device/csa_compress/launch.hpp"

#include "device/csa_compress/naive_backward.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t csa_compress_workspace(const CsaCompress& args) {
  return sizeof(float) * 3 * static_cast<std::size_t>(args.batch * args.blocks * args.width);
}
std::size_t csa_compress_backward_workspace(const CsaCompressBackward& args) {
  const CsaCompress& p = args.of;
  const std::int64_t rows = p.batch * p.blocks;
  const std::int64_t bias = host::column_sum_floats(rows, p.m * p.lanes * p.width),
                     norm = host::column_sum_floats(rows, p.width);
  return sizeof(float) *
         static_cast<std::size_t>(rows * (4 * p.width + 1) + (bias > norm ? bias : norm));
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const CsaCompress& p) {
  const char* wrong = "";
  if (p.batch < 0 || p.tokens < 0 || p.blocks < 0 || p.m < 1 || p.width < 1)
    wrong = "csa_compress: a size below 0, or no channel, or no token in a block";
  else if (p.lanes != 1 && p.lanes != 2)
    wrong = "csa_compress: one lane or two";
  else if (p.blocks * p.m > p.tokens || p.tokens > 0x7FFFFFFF)
    wrong = "csa_compress: more blocks than tokens, or tokens beyond 32 bits";
  else if (!p.kv || !p.gate || !p.first || !p.before || !p.block_of)
    wrong = "csa_compress: no kv, gate or table";
  else if (!p.prior_kv != !p.prior_gate || (p.prior_kv && p.lanes == 1))
    wrong = "csa_compress: half a prior, or one beside a single lane";
  else if (!(p.eps >= 0))
    wrong = "csa_compress: eps < 0";
  else if (p.rotary.dim > 0)
    wrong = fault_of(p.rotary, p.batch * p.blocks, p.width);
  if (*wrong) stream.fail(wrong);
  return !stream.failed();
}

template <class T, int Rank>
View<const T, Rank> given(const void* data, const std::int64_t (&extent)[Rank]) {
  if (!data) return {};
  return {static_cast<const T*>(data), extent};
}

template <class T> Pooled<T> pooled_of(const CsaCompress& p) {
  const std::int64_t channels = p.lanes * p.width;
  return {given<T>(p.kv, {p.batch, p.tokens, channels}),
          given<T>(p.gate, {p.batch, p.tokens, channels}),
          given<T>(p.position_bias, {p.m, channels}),
          given<T>(p.prior_kv, {p.batch, p.m, channels}),
          given<T>(p.prior_gate, {p.batch, p.m, channels}),
          View<const std::int32_t, 1>(p.first, {p.blocks}),
          View<const std::int32_t, 2>(p.before, {p.batch, p.blocks}),
          p.m,
          p.width,
          p.lanes};
}

// The workspace's first three parts: pooled, top, mass.
template <class Number> View<Number, 3> part(const CsaCompress& p, Number* workspace, int i) {
  return {workspace + i * p.batch * p.blocks * p.width, {p.batch, p.blocks, p.width}};
}
template <class T> void pool(Stream& stream, const CsaCompress& p, float* workspace) {
  launch<PoolBlocks<T>>(
      stream, {element_blocks(p.batch * p.blocks * p.width)},
      {pooled_of<T>(p), part(p, workspace, 0), part(p, workspace, 1), part(p, workspace, 2)});
}

template <class T> void copy(Stream& stream, const CsaCompress& p, const void* from,
                             std::int64_t tokens, std::int64_t first, void* to,
                             std::int64_t count) {
  const std::int64_t channels = p.lanes * p.width;
  launch<CopyTokens<T>>(stream, {element_blocks(p.batch * count * channels)},
                        {given<T>(from, {p.batch, tokens, channels}),
                         View<T, 3>(static_cast<T*>(to), {p.batch, count, channels}), first});
}

template <class T> void forward(Stream& stream, const CsaCompress& p) {
  const std::int64_t rows = p.batch * p.blocks, end = p.blocks * p.m;
  pool<T>(stream, p, p.workspace);
  launch<FinishBlocks<T>>(
      stream, {row_blocks(rows)},
      {View<const float, 2>(p.workspace, {rows, p.width}), given<T>(p.norm_weight, {p.width}),
       View<T, 2>(static_cast<T*>(p.compressed), {rows, p.width}), rotation_of(p.rotary), p.eps,
       p.norm});
  if (!p.rests) return;
  copy<T>(stream, p, p.kv, p.tokens, end, p.leftover_kv, p.tokens - end);
  copy<T>(stream, p, p.gate, p.tokens, end, p.leftover_gate, p.tokens - end);
  if (p.lanes == 1) return;
  const bool any = end > 0;
  copy<T>(stream, p, any ? p.kv : p.prior_kv, any ? p.tokens : p.m, any ? end - p.m : 0, p.next_kv,
          p.m);
  copy<T>(stream, p, any ? p.gate : p.prior_gate, any ? p.tokens : p.m, any ? end - p.m : 0,
          p.next_gate, p.m);
}

template <class T> void backward(Stream& stream, const CsaCompressBackward& args) {
  const CsaCompress& p = args.of;
  const std::int64_t rows = p.batch * p.blocks, channels = p.lanes * p.width, end = p.blocks * p.m;
  float* const d = args.workspace + 3 * rows * p.width;
  float* const factor = d + rows * p.width;
  float* const parts = factor + rows;
  pool<T>(stream, p, args.workspace);
  const View<const float, 2> pooled(args.workspace, {rows, p.width});
  const TurnedBack<T> dy{given<T>(args.dcompressed, {rows, p.width}), rotation_of(p.rotary)};
  launch<PooledGradient<T>>(
      stream, {row_blocks(rows)},
      {pooled, given<T>(p.norm_weight, {p.width}), dy, View<float, 2>(d, {rows, p.width}),
       View<float, 1>(factor, {rows}), p.eps, p.norm});
  if (args.dnorm_weight)
    sum_columns<BlockNormTerms<T>>(stream, {pooled, dy, View<const float, 1>(factor, {rows}), {}},
                                   rows, p.width, parts, args.dnorm_weight);
  const float* const kept = args.workspace;
  const Shares<T> share{pooled_of<T>(p), part(p, kept, 0), part(p, kept, 1), part(p, kept, 2),
                        part(p, kept, 3)};
  // A next call's prior is the last block, or the given prior where there is no block.
  const auto copied = [&](const void* dx, std::int64_t from, std::int64_t count) {
    return Copied<T>{given<T>(dx, {p.batch, count, channels}), from};
  };
  const bool any = end > 0;
  launch<TokenGradient<T>>(stream, {element_blocks(p.batch * p.tokens * channels)},
                           {share, View<const std::int32_t, 1>(p.block_of, {p.tokens}),
                            copied(args.dleftover_kv, end, p.tokens - end),
                            copied(args.dleftover_gate, end, p.tokens - end),
                            copied(any ? args.dnext_kv : nullptr, end - p.m, p.m),
                            copied(any ? args.dnext_gate : nullptr, end - p.m, p.m),
                            View<float, 3>(args.dkv, {p.batch, p.tokens, channels}),
                            View<float, 3>(args.dgate, {p.batch, p.tokens, channels})});
  if (args.dprior_kv)
    launch<PriorGradient<T>>(stream, {element_blocks(p.batch * p.m * channels)},
                             {share, copied(any ? nullptr : args.dnext_kv, 0, p.m),
                              copied(any ? nullptr : args.dnext_gate, 0, p.m),
                              View<float, 3>(args.dprior_kv, {p.batch, p.m, channels}),
                              View<float, 3>(args.dprior_gate, {p.batch, p.m, channels})});
  if (args.dposition_bias)
    sum_columns<PositionBiasTerms<T>>(stream, {share, p.batch, {}}, rows, p.m * channels, parts,
                                      args.dposition_bias);
}

}  // namespace

void csa_compress(Stream& stream, const CsaCompress& p) {
  if (!valid(stream, p)) return;
  if (!p.compressed || !p.workspace) return stream.fail("csa_compress: no compressed or workspace");
  if (p.rests && (!p.leftover_kv || !p.leftover_gate))
    return stream.fail("csa_compress: no place for leftovers");
  if (p.rests && p.lanes == 2 && (!p.next_kv || !p.next_gate))
    return stream.fail("csa_compress: no place for the next prior");
  p.type == Type::bf16 ? forward<bf16>(stream, p) : forward<float>(stream, p);
}
void csa_compress_backward(Stream& stream, const CsaCompressBackward& args) {
  if (!valid(stream, args.of)) return;
  if (!args.dkv || !args.dgate || !args.workspace)
    return stream.fail("csa_compress: no dkv, dgate or workspace");
  if (args.of.prior_kv && (!args.dprior_kv || !args.dprior_gate))
    return stream.fail("csa_compress: no place for the prior's gradients");
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
