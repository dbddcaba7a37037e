// device/pieces/attention_launch.hpp: launchers of the attentions, of both sides. Which Widths an
// operation has is its own choice: each is two kernels for each type.
#pragma once
#include <string>

#include "device/pieces/attention_backward.cuh"
#include "device/pieces/column_sums.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {

template <class Stream>
bool valid_attention(Stream& stream, const std::string& name, const Attention& p) {
  const auto refuse = [&](const char* why) { stream.fail(name + ": " + why); };
  const std::int64_t most = 0x7FFFFFFF;
  if (p.batch < 0 || p.rows < 0 || p.near.rows < 0 || p.far.rows < 0 || p.slots < 0)
    refuse("a size below 0");
  else if (p.heads < 1 || p.groups < 1 || p.width < 1 || p.value_width < 1)
    refuse("a size below 1");
  else if (p.heads % p.groups != 0)
    refuse("groups of keys that do not divide the heads");
  else if (p.near.rows > most || p.far.rows > most || p.slots > most || p.width > most)
    refuse("more rows, slots or channels than an int counts");
  else if (!p.query || !p.output || !p.lse || !p.stretch)
    refuse("no query, output, lse or stretch");
  else if ((p.near.rows > 0 && !p.near.key) || (p.far.rows > 0 && !p.far.key))
    refuse("a pool without keys");
  else if (p.slots > 0 && (!p.slot || !p.far.key))
    refuse("slots, and nothing in them or nothing they could name");
  else if (p.near.key && p.far.key && !p.near.value != !p.far.value)
    refuse("values in one pool and not in the other");
  else if (!p.near.value && !p.far.value && p.value_width > p.width)
    refuse("values that are part of keys, and wider");
  else if (p.lse_form.counts_sink && !p.sink)
    refuse("an lse that counts a sink, and no sink");
  return !stream.failed();
}

template <class T> AttentionViews<T> views_of(const Attention& p) {
  const std::int64_t n = p.batch * p.rows;
  AttentionViews<T> a;
  a.query = View<const T, 3>(static_cast<const T*>(p.query), {n, p.heads, p.width});
  const auto view = [&](const KeyPool& pool, const void* data, std::int64_t width) {
    return View<const T, 4>(static_cast<const T*>(data), {p.batch, pool.rows, p.groups, width});
  };
  a.near_key = view(p.near, p.near.key, p.width), a.far_key = view(p.far, p.far.key, p.width);
  if (p.near.value) a.near_value = view(p.near, p.near.value, p.value_width);
  if (p.far.value) a.far_value = view(p.far, p.far.value, p.value_width);
  a.stretch = View<const std::int32_t, 2>(p.stretch, {n, 2});
  a.slot = View<const std::int32_t, 2>(p.slot, {n, p.slots});
  if (p.sink) a.sink = View<const T, 1>(static_cast<const T*>(p.sink), {p.heads});
  a.rows = p.rows, a.slots = static_cast<int>(p.slots), a.groups = static_cast<int>(p.groups);
  a.value_width = static_cast<int>(p.value_width);
  a.scale = p.scale, a.lse_form = p.lse_form;
  return a;
}

template <class T, int Width, bool OneLatent, class Stream>
void attend(Stream& stream, const Attention& p) {
  const std::int64_t n = p.batch * p.rows;
  View<float, 2> max_logit;
  if (p.max_logit) max_logit = View<float, 2>(p.max_logit, {n, p.heads});
  launch<AttentionForward<T, Width, OneLatent>>(
      stream, {n, head_tiles(p.heads, p.groups)},
      {views_of<T>(p), View<T, 3>(static_cast<T*>(p.output), {n, p.heads, p.value_width}),
       View<float, 2>(p.lse, {n, p.heads}), max_logit});
}

// workspace: the sink's gradient by rows, and parts of its sum
constexpr std::int64_t attention_backward_floats(const AttentionBackward& args) {
  if (!args.dsink) return 0;
  const std::int64_t n = args.of.batch * args.of.rows;
  return n * args.of.heads + column_sum_floats(n, args.of.heads);
}
template <class T, int Width, bool OneLatent, class Stream>
void pull_back(Stream& stream, const AttentionBackward& args) {
  const Attention& p = args.of;
  const std::int64_t n = p.batch * p.rows;
  typename AttentionGradients<T, Width, OneLatent>::Args a;
  a.in = views_of<T>(p);
  a.output = View<const T, 3>(static_cast<const T*>(p.output), {n, p.heads, p.value_width});
  a.doutput = View<const T, 3>(static_cast<const T*>(args.doutput), {n, p.heads, p.value_width});
  a.lse = View<const float, 2>(p.lse, {n, p.heads});
  if (args.dlse) a.dlse = View<const T, 2>(static_cast<const T*>(args.dlse), {n, p.heads});
  a.dquery = View<float, 3>(args.dquery, {n, p.heads, p.width});
  const auto view = [&](const KeyPool& pool, float* data, std::int64_t width) {
    return View<float, 4>(data, {p.batch, pool.rows, p.groups, width});
  };
  a.dnear_key = view(p.near, args.dnear_key, p.width);
  a.dfar_key = view(p.far, args.dfar_key, p.width);
  a.dnear_value = view(p.near, args.dnear_value, p.value_width);
  a.dfar_value = view(p.far, args.dfar_value, p.value_width);
  if (args.dsink) a.dsink = View<float, 2>(args.workspace, {n, p.heads});
  launch<AttentionGradients<T, Width, OneLatent>>(stream, {n, head_tiles(p.heads, p.groups)}, a);
  if (args.dsink)
    sum_columns<SinkTerms>(stream, {View<const float, 2>(args.workspace, {n, p.heads}), {}}, n,
                           p.heads, args.workspace + n * p.heads, args.dsink);
}

template <class Stream>
bool valid_attention(Stream& stream, const std::string& name, const AttentionBackward& args) {
  const auto refuse = [&](const char* why) { stream.fail(name + ": " + why); };
  const Attention& p = args.of;
  if (!valid_attention(stream, name, p)) return false;
  if (!args.doutput || !args.dquery)
    refuse("no doutput or dquery");
  else if ((p.near.key && !args.dnear_key) || (p.far.key && !args.dfar_key) ||
           (p.near.value && !args.dnear_value) || (p.far.value && !args.dfar_value))
    refuse("a pool whose gradient has no place");
  else if (!p.sink != !args.dsink)
    refuse("a sink without dsink, or dsink without a sink");
  else if (args.dsink && !args.workspace)
    refuse("no workspace for dsink");
  return !stream.failed();
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
