#include "reference/csa_indexer_loss/csa_indexer_loss.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_indexer_loss {
namespace {

namespace loss = indexer_loss;

constexpr loss::Preset table[] = {
    loss::preset::maxtext_v4,
    loss::preset::exact,
    loss::preset::maxtext_v32,
    loss::preset::megatron,
    loss::preset::megatron_csa_eager,
    loss::preset::megatron_csa_fused,
    loss::preset::primus,
    loss::preset::veomni,
    loss::preset::tilelang,
};

// Letters unified, the grid's N held against the tensors, the blocks seen as keys of one head.
loss::Tensors tensors_of(const Inputs& inputs, const Options& options, Sizes& sizes) {
  if (!options.m) throw Error("option m", "nothing", "the number of tokens per block, m >= 1");
  if (*options.m < 1) throw Error("option m", std::to_string(*options.m), "m >= 1");
  Inputs in = inputs;
  in.key = in.compressed;
  loss::check(in, options, true);
  sizes.unify_all(in);
  const Visibility grid(options.mask, in.mask, sizes, Blocks{*options.m, options.grid},
                        options.tokens);
  const bool slots = options.layout == loss::Layout::slots;
  sizes.set("N|k", slots ? sizes["k"] : sizes["N"], slots ? "k of in.indices" : "N");
  if (in.key.given()) in.key = with_axis(in.key, 2);
  return in;
}

}  // namespace

std::span<const loss::Preset> Op::presets() { return table; }

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  Sizes sizes;
  const loss::Tensors tensors = tensors_of(in, options, sizes);
  const bool joint = options.teacher != loss::Teacher::own;
  return {Visibility(options.mask, tensors.mask, sizes, Blocks{*options.m, options.grid},
                     options.tokens),
          *options.m, joint ? options.window : std::nullopt, in.selected, in.indices};
}

template <class T>
loss::Outputs<T> Op::forward(const Inputs& inputs, const Options& options, const Run& run) {
  Sizes sizes;
  const loss::Tensors tensors = tensors_of(inputs, options, sizes);
  return loss::forward<T>(tensors, options, run, sizes);
}
template <class T> loss::Gradients<T> Op::backward(const Inputs& inputs, const Options& options,
                                                   const Run& run, const Cotangents& cotangents) {
  Sizes sizes;
  const loss::Tensors tensors = tensors_of(inputs, options, sizes);
  return loss::backward<T>(tensors, options, run, sizes, cotangents);
}

#define INSTANTIATE(T)                                                                   \
  template loss::Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);   \
  template loss::Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                              const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_indexer_loss
