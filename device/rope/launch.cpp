#include "device/rope/launch.hpp"

#include "device/rope/naive.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const Rope& p) {
  if (p.tokens < 0 || p.heads < 0 || p.width < 0) {
    stream.fail("rope: a size below 0");
  } else if (const char* fault = fault_of(p.rotary, p.tokens, p.width); *fault) {
    stream.fail(fault);
  }
  return !stream.failed();
}

template <class X, class Y, bool Back>
void start(Stream& stream, const Rope& p, const void* x, void* y) {
  const std::int64_t tasks = p.tokens * p.heads * (p.width - p.rotary.dim / 2);
  launch<RopeRows<X, Y, Back>>(
      stream, {(tasks + rope_threads - 1) / rope_threads},
      {View<const X, 3>(static_cast<const X*>(x), {p.tokens, p.heads, p.width}),
       View<Y, 3>(static_cast<Y*>(y), {p.tokens, p.heads, p.width}), rotation_of(p.rotary)});
}

}  // namespace

void rope(Stream& stream, const Rope& p) {
  if (!valid(stream, p)) return;
  if (!p.x || !p.y) return stream.fail("rope: no x or no y");
  p.type == Type::bf16 ? start<bf16, bf16, false>(stream, p, p.x, p.y)
                       : start<float, float, false>(stream, p, p.x, p.y);
}
void rope_backward(Stream& stream, const RopeBackward& args) {
  if (!valid(stream, args.of)) return;
  if (!args.dy || !args.dx) return stream.fail("rope: no dy or no dx");
  args.of.type == Type::bf16 ? start<bf16, float, true>(stream, args.of, args.dy, args.dx)
                             : start<float, float, true>(stream, args.of, args.dy, args.dx);
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
