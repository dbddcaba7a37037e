#include "device/topk/launch.hpp"

#include "device/topk/naive.cuh"

namespace plumbline::device {

#ifndef __CUDACC__
std::size_t topk_workspace(const TopK& args) {
  return sizeof(std::int32_t) * static_cast<std::size_t>(args.rows * args.k);
}
#endif

namespace PLUMBLINE_SIDE {
namespace {

template <class T> void start(Stream& stream, const TopK& p) {
  View<const unsigned char, 2> visible;
  if (p.visible) visible = View<const unsigned char, 2>(p.visible, {p.rows, p.keys});
  launch<TopKRows<T>>(
      stream, {p.rows},
      {View<const T, 2>(static_cast<const T*>(p.scores), {p.rows, p.keys}), visible,
       View<std::int32_t, 2>(p.indices, {p.rows, p.k}),
       View<std::int32_t, 2>(p.selected, {p.rows, p.keys}),
       View<std::int32_t, 2>(static_cast<std::int32_t*>(p.workspace), {p.rows, p.k}), p.threshold});
}

}  // namespace

void topk(Stream& stream, const TopK& p) {
  if (p.rows < 0 || p.keys < 0 || p.k < 0) return stream.fail("topk: a size below 0");
  if (p.keys > 0x7FFFFFFF || p.k > 0x7FFFFFFF) return stream.fail("topk: indices are 32 bits wide");
  if (!p.scores || !p.indices || !p.selected || !p.workspace)
    return stream.fail("topk: no scores, indices, selected or workspace");
  p.type == Type::bf16 ? start<bf16>(stream, p) : start<float>(stream, p);
}

}  // namespace PLUMBLINE_SIDE
}  // namespace plumbline::device
