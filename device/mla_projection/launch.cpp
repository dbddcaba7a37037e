#include "device/mla_projection/launch.hpp"

#include "device/mla_projection/naive_backward.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t mla_projection_workspace(const MlaProjection& p) {
  return sizeof(float) * static_cast<std::size_t>(p.rows * (p.q_rank + p.kv_rank + p.rope));
}
std::size_t mla_projection_backward_workspace(const MlaProjectionBackward& args) {
  const MlaProjection& p = args.of;
  const std::int64_t raw = p.rows * (p.q_rank + p.kv_rank + p.rope);
  // raw latents, their cotangents, those of the normed latents, factors; parts of column sums
  std::int64_t widest = p.q_rank;
  for (const std::int64_t columns :
       {p.heads * (p.nope + p.rope), p.heads * (p.nope + p.value_width), p.kv_rank + p.rope})
    widest = columns > widest ? columns : widest;
  return sizeof(float) * static_cast<std::size_t>(2 * raw + p.rows * (p.q_rank + p.kv_rank + 2) +
                                                  host::column_sum_floats(p.rows, widest));
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const MlaProjection& p) {
  const char* wrong = "";
  if (p.rows < 0 || p.width < 0 || p.heads < 0 || p.nope < 1 || p.rope < 2 || p.value_width < 1)
    wrong = "mla_projection: a size that cannot be";
  else if (p.kv_rank < 1 || (p.wq_a && p.q_rank < 1) || (!p.wq_a && p.q_rank != 0))
    wrong = "mla_projection: a latent without channels, or a rank without wq_a";
  else if (!p.x || !p.wq_b || !p.wkv_a || !p.kv_norm || !p.wkv_b || (p.wq_a && !p.q_norm))
    wrong = "mla_projection: a weight is missing";
  else if (!(p.eps >= 0))
    wrong = "mla_projection: eps < 0";
  else if (p.rotary.start != 0 || p.rotary.dim != p.rope)
    wrong = "mla_projection: a rotation of other channels than pe";
  else
    wrong = fault_of(p.rotary, p.rows, p.rope);
  if (*wrong) stream.fail(wrong);
  return !stream.failed();
}

template <class T, int Rank>
View<const T, Rank> given(const void* data, const std::int64_t (&extent)[Rank]) {
  if (!data) return {};
  return {static_cast<const T*>(data), extent};
}

// What is made of a problem again and again.
template <class T> struct Parts {
  const MlaProjection& p;
  float* q_raw;   // rows Rq
  float* kv_raw;  // rows Rkv+dr
  std::int64_t stride = p.kv_rank + p.rope;

  Parts(const MlaProjection& of, float* workspace)
      : p(of), q_raw(workspace), kv_raw(workspace + of.rows * of.q_rank) {}

  bool direct() const { return p.wq_a == nullptr; }
  View<const T, 2> x() const { return given<T>(p.x, {p.rows, p.width}); }
  View<const T, 2> query_source() const {
    return direct() ? x() : given<T>(p.q_latent, {p.rows, p.q_rank});
  }
  View<const T, 3> query_weight() const {
    return given<T>(p.wq_b, {direct() ? p.width : p.q_rank, p.heads, p.nope + p.rope});
  }
  View<const T, 2> kv_latent() const { return given<T>(p.kv_latent, {p.rows, p.kv_rank}); }
  View<const T, 3> kv_weight() const {
    return given<T>(p.wkv_b, {p.kv_rank, p.heads, p.nope + p.value_width});
  }
  View<const float, 2> raw_latent() const {  // without the rotary key
    return {kv_raw, {p.rows, p.kv_rank}, {stride, 1}};
  }
  Rotation in_head() const {
    Rotary rotary = p.rotary;
    rotary.start = p.nope;
    return rotation_of(rotary);
  }

  void project(Stream& stream, const void* weight, const void* bias, std::int64_t columns,
               float* raw) const {
    launch_product<LinearTerms<T, float>>(
        stream,
        {x(), given<T>(weight, {p.width, 1, columns}), given<T>(bias, {1, columns}),
         View<float, 3>(raw, {p.rows, 1, columns}), Slice{0, columns}},
        p.rows, columns);
  }
  void make_raw(Stream& stream) const {
    if (!direct()) project(stream, p.wq_a, p.bq_a, p.q_rank, q_raw);
    project(stream, p.wkv_a, p.bkv_a, stride, kv_raw);
  }
};

template <class T> void forward(Stream& stream, const MlaProjection& p) {
  const Parts<T> parts(p, p.workspace);
  parts.make_raw(stream);
  if (!parts.direct())
    launch<RmsForward<float, T, T>>(
        stream, {row_blocks(p.rows)},
        {View<const float, 2>(parts.q_raw, {p.rows, p.q_rank}), given<T>(p.q_norm, {p.q_rank}),
         View<T, 2>(static_cast<T*>(p.q_latent), {p.rows, p.q_rank}), p.eps});
  launch<RmsForward<float, T, T>>(
      stream, {row_blocks(p.rows)},
      {parts.raw_latent(), given<T>(p.kv_norm, {p.kv_rank}),
       View<T, 2>(static_cast<T*>(p.kv_latent), {p.rows, p.kv_rank}), p.eps});
  const View<T, 3> query(static_cast<T*>(p.query), {p.rows, p.heads, p.nope + p.rope}),
      key(static_cast<T*>(p.key), {p.rows, p.heads, p.nope + p.rope}),
      value(static_cast<T*>(p.value), {p.rows, p.heads, p.value_width});
  const std::int64_t tasks = p.rows * (p.rope / 2);
  launch<RotaryKey<T>>(stream, {(tasks + 127) / 128},
                       {View<const float, 2>(parts.kv_raw, {p.rows, parts.stride}),
                        View<T, 2>(static_cast<T*>(p.k_pe), {p.rows, p.rope}), key,
                        rotation_of(p.rotary), p.kv_rank, p.nope});
  for (const bool rest : {false, true}) {  // sliced: part by part, else both at once
    if (!p.sliced && rest) break;
    const bool nope = !p.sliced || !rest;
    const HeadColumns to_query{p.nope, p.rope, nope, !p.sliced || rest},
        to_kv{p.nope, p.value_width, nope, !p.sliced || rest};
    launch_product<QueryTerms<T>>(stream,
                                  {{parts.query_source(), parts.query_weight(),
                                    given<T>(p.bq_b, {p.heads, p.nope + p.rope}), to_query},
                                   query,
                                   parts.in_head(),
                                   p.scale},
                                  p.rows, columns_of(to_query, p.heads));
    launch_product<KeyValueTerms<T>>(stream,
                                     {{parts.kv_latent(), parts.kv_weight(),
                                       given<T>(p.bkv_b, {p.heads, p.nope + p.value_width}), to_kv},
                                      key,
                                      value},
                                     p.rows, columns_of(to_kv, p.heads));
  }
}

// The three sums that follow from a cotangent D of latent·W + bias. split: channels of each head that
// are contracted first, the others being added to them; 0: all at once.
template <class T, class D> struct PullBack {
  D d;
  View<const T, 2> latent;
  View<const T, 3> weight;
  float *parts, *dweight, *dbias;

  void to_latent(Stream& stream, View<const T, 2> dlatent, View<float, 2> sum, std::int64_t split,
                 bool add) const {
    const std::int64_t width = weight.extent(2), first = split > 0 ? split : width;
    const auto contract = [&](View<const T, 2> beside, std::int64_t begin, std::int64_t end,
                              bool more) {
      launch_product<LatentGradientTerms<T, D>>(stream, {d, weight, beside, sum, begin, end, more},
                                                sum.extent(0), sum.extent(1));
    };
    contract(dlatent, 0, first, add);
    if (first < width) contract({}, first, width, true);
  }
  void to_weight(Stream& stream) const {
    const std::int64_t inputs = weight.extent(0), heads = weight.extent(1),
                       width = weight.extent(2);
    launch_product<HeadWeightTerms<T, D>>(
        stream, {d, latent, View<float, 3>(dweight, {inputs, heads, width})}, inputs,
        heads * width);
    if (dbias)
      sum_columns<HeadBiasTerms<D>>(stream, {d, latent.extent(0), width, {}}, latent.extent(0),
                                    heads * width, parts, dbias);
  }
};

template <class T> void backward(Stream& stream, const MlaProjectionBackward& args) {
  const MlaProjection& p = args.of;
  const Parts<T> parts(p, args.workspace);
  const std::int64_t stride = parts.stride;
  float* const dq_raw = parts.kv_raw + p.rows * stride;
  float* const dkv_raw = dq_raw + p.rows * p.q_rank;
  float* const dq_latent = dkv_raw + p.rows * stride;
  float* const dkv_latent = dq_latent + p.rows * p.q_rank;
  float* const factors = dkv_latent + p.rows * p.kv_rank;  // of both norms
  float* const sums = factors + 2 * p.rows;
  const std::int64_t split = p.sliced ? p.nope : 0;
  parts.make_raw(stream);
  const View<float, 2> dx(args.dx, {p.rows, p.width});

  const PullBack<T, QueryCotangent<T>> query{
      {given<T>(args.dquery, {p.rows, p.heads, p.nope + p.rope}), parts.in_head(), p.scale},
      parts.query_source(),
      parts.query_weight(),
      sums,
      args.dwq_b,
      args.dbq_b};
  query.to_weight(stream);
  // Through a norm to the raw latent. The factor of each row serves the weight's sum.
  const auto norm = [&](View<const float, 2> raw, const void* weight, View<float, 2> dlatent,
                        View<float, 2> draw, float* factor, float* dweight) {
    const std::int64_t rank = raw.extent(1);
    const View<const float, 2> dy(dlatent.data(), {p.rows, rank});
    launch<RmsInputGradient<float, T, float>>(
        stream, {row_blocks(p.rows)},
        {raw, given<T>(weight, {rank}), dy, draw, View<float, 1>(factor, {p.rows}), p.eps});
    sum_columns<RmsWeightTerms<float, float>>(
        stream, {raw, dy, View<const float, 1>(factor, {p.rows}), {}}, p.rows, rank, sums, dweight);
  };
  if (parts.direct()) {
    query.to_latent(stream, {}, dx, split, false);
  } else {
    const View<float, 2> dlatent(dq_latent, {p.rows, p.q_rank}), draw(dq_raw, {p.rows, p.q_rank});
    query.to_latent(stream, given<T>(args.dq_latent, {p.rows, p.q_rank}), dlatent, split, false);
    norm(View<const float, 2>(parts.q_raw, {p.rows, p.q_rank}), p.q_norm, dlatent, draw, factors,
         args.dq_norm);
    const PullBack<T, MatrixCotangent> to_x{{View<const float, 2>(dq_raw, {p.rows, p.q_rank})},
                                            parts.x(),
                                            given<T>(p.wq_a, {p.width, 1, p.q_rank}),
                                            sums,
                                            args.dwq_a,
                                            args.dbq_a};
    to_x.to_weight(stream);
    to_x.to_latent(stream, {}, dx, 0, false);
  }

  const View<const T, 3> dkey = given<T>(args.dkey, {p.rows, p.heads, p.nope + p.rope});
  const PullBack<T, KeyValueCotangent<T>> key_value{
      {dkey, given<T>(args.dvalue, {p.rows, p.heads, p.value_width}), p.nope},
      parts.kv_latent(),
      parts.kv_weight(),
      sums,
      args.dwkv_b,
      args.dbkv_b};
  key_value.to_weight(stream);
  const View<float, 2> dlatent(dkv_latent, {p.rows, p.kv_rank});
  key_value.to_latent(stream, given<T>(args.dkv_latent, {p.rows, p.kv_rank}), dlatent, split,
                      false);
  norm(parts.raw_latent(), p.kv_norm, dlatent,
       View<float, 2>(dkv_raw, {p.rows, p.kv_rank}, {stride, 1}), factors + p.rows, args.dkv_norm);
  const std::int64_t tasks = p.rows * (p.rope / 2);
  launch<RotaryKeyGradient<T>>(
      stream, {(tasks + 127) / 128},
      {given<T>(args.dk_pe, {p.rows, p.rope}), dkey, View<float, 2>(dkv_raw, {p.rows, stride}),
       rotation_of(p.rotary), p.kv_rank, p.nope});
  const PullBack<T, MatrixCotangent> to_x{{View<const float, 2>(dkv_raw, {p.rows, stride})},
                                          parts.x(),
                                          given<T>(p.wkv_a, {p.width, 1, stride}),
                                          sums,
                                          args.dwkv_a,
                                          args.dbkv_a};
  to_x.to_weight(stream);
  to_x.to_latent(stream, {}, dx, 0, true);
}

}  // namespace

void mla_projection(Stream& stream, const MlaProjection& p) {
  if (!valid(stream, p)) return;
  if (!p.query || !p.key || !p.value || !p.kv_latent || !p.k_pe || (p.wq_a && !p.q_latent) ||
      !p.workspace)
    return stream.fail("mla_projection: no place for a result, or no workspace");
  p.type == Type::bf16 ? forward<bf16>(stream, p) : forward<float>(stream, p);
}
void mla_projection_backward(Stream& stream, const MlaProjectionBackward& args) {
  const MlaProjection& p = args.of;
  if (!valid(stream, p)) return;
  if (!p.kv_latent || (p.wq_a && !p.q_latent))
    return stream.fail("mla_projection: the backward needs the forward's latents");
  if (!args.dx || !args.dwq_b || !args.dwkv_a || !args.dkv_norm || !args.dwkv_b ||
      (p.wq_a && (!args.dwq_a || !args.dq_norm)) || !args.workspace)
    return stream.fail("mla_projection: no place for a gradient, or no workspace");
  p.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
