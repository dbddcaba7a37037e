#include "reference/csa_indexer_loss/csa_indexer_loss.hpp"

#include "reference/error.hpp"

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

template loss::Outputs<f32> Op::forward<f32>(const Inputs&, const Options&, const Run&);
template loss::Outputs<f64> Op::forward<f64>(const Inputs&, const Options&, const Run&);
template loss::Outputs<f192> Op::forward<f192>(const Inputs&, const Options&, const Run&);
template loss::Outputs<mp50> Op::forward<mp50>(const Inputs&, const Options&, const Run&);
template loss::Outputs<mp100> Op::forward<mp100>(const Inputs&, const Options&, const Run&);
template loss::Gradients<f32> Op::backward<f32>(const Inputs&, const Options&, const Run&,
                                                const Cotangents&);
template loss::Gradients<f64> Op::backward<f64>(const Inputs&, const Options&, const Run&,
                                                const Cotangents&);
template loss::Gradients<f192> Op::backward<f192>(const Inputs&, const Options&, const Run&,
                                                  const Cotangents&);
template loss::Gradients<mp50> Op::backward<mp50>(const Inputs&, const Options&, const Run&,
                                                  const Cotangents&);
template loss::Gradients<mp100> Op::backward<mp100>(const Inputs&, const Options&, const Run&,
                                                    const Cotangents&);

}  // namespace plumbline::csa_indexer_loss
