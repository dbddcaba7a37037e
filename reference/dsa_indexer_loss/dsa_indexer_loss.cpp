#include "reference/dsa_indexer_loss/dsa_indexer_loss.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::dsa_indexer_loss {
namespace {

namespace loss = indexer_loss;

constexpr loss::Preset table[] = {
    loss::preset::maxtext_v32, loss::preset::exact,    loss::preset::maxtext_v4,
    loss::preset::megatron,    loss::preset::tilelang,
};

loss::Tensors tensors_of(const Inputs& inputs, const Options& options, Sizes& sizes) {
  Inputs in = inputs;
  loss::check(in, options, false);
  sizes.unify_all(in);
  const bool slots = options.layout == loss::Layout::slots;
  if (!slots && sizes.known("S|k")) {
    sizes.set("S", sizes["S|k"],
              in.scores.given() ? in.scores.name : "the given tensors over keys");
  }
  const Visibility tokens(options.mask, in.mask, sizes, Blocks{}, options.tokens);
  sizes.set("S|k", slots ? sizes["k"] : sizes["S"], slots ? "k of in.indices" : "S");
  if (in.key.given() && in.query.given()) {
    const std::int64_t heads = sizes["H"], key_heads = sizes["Hk"];
    if (key_heads < 1 || heads % key_heads != 0) {
      throw Error(in.key.name, "Hk = " + std::to_string(key_heads) + " key heads",
                  "a divisor of H = " + std::to_string(heads));
    }
  }
  return in;
}

}  // namespace

std::span<const loss::Preset> Op::presets() { return table; }

MaskView Op::mask_view(const Inputs& in, const Options& options) {
  Sizes sizes;
  const loss::Tensors tensors = tensors_of(in, options, sizes);
  return {Visibility(options.mask, tensors.mask, sizes, Blocks{}, options.tokens),
          0,
          {},
          in.selected,
          in.indices};
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

}  // namespace plumbline::dsa_indexer_loss
