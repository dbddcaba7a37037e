#include "reference/csa_attention/problem.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_attention {
namespace {

std::int64_t window_of(const Options& options) {
  if (!options.window)
    throw Error("option window", "nothing", "a window >= 0 (0 = no window keys)");
  if (*options.window < 0)
    throw Error("option window", std::to_string(*options.window), "a window >= 0");
  return *options.window;
}

Sizes sizes_of(const Inputs& in, const attention::Selection& selection) {
  attention::check(selection);
  Inputs named = in;
  Sizes sizes;
  sizes.unify_all(named);
  return sizes;
}

attention::Source latent(const StoredTensor& tensor, std::int64_t width, int gradient) {
  const attention::Part part{tensor, 0, width, gradient};
  return {{part}, {part}};
}

}  // namespace

void check(const Options& options) {
  if (!options.m) throw Error("option m", "nothing", "the number of tokens per block, m >= 1");
  if (*options.m < 1) throw Error("option m", std::to_string(*options.m), "m >= 1");
}

template <class T> Problem<T>::Problem(const Inputs& in, const Options& options)
    : sizes(sizes_of(in, {in.selected, in.indices})),
      visibility(options.mask, in.mask, sizes, Blocks{options.m.value_or(0), options.grid},
                 options.tokens),
      selection{in.selected, in.indices, options.strict_selection, options.duplicates},
      window(window_of(options)),
      blocks(options.m.has_value()),
      setting{options,      visibility,         {},      {},
              in.query,     sizes["D"],         in.sink, in.given_output,
              in.given_lse, in.given_max_logit, nullptr} {
  setting.sources = {latent(in.kv, sizes["D"], 0)};
  if (in.compressed.given()) setting.sources.push_back(latent(in.compressed, sizes["D"], 1));
  setting.keys = [this](std::int64_t b, std::int64_t t) {
    std::vector<attention::RowKey> keys;
    for (const std::int64_t token : visibility.window(b, t, window)) keys.push_back({0, token});
    if (!blocks) return keys;
    for (const std::int64_t block : attention::keys_of(selection, visibility, b, t))
      keys.push_back({1, block});
    return keys;
  };
}

template <class T> Outputs<T> Problem<T>::forward(const Run& run) const {
  return {attention::forward(setting, run)};
}

template <class T> Gradients<T> Problem<T>::backward(const Run& run, const Cotangents& cotangents) {
  if (cotangents.output.given()) sizes.unify(cotangents.output, "B T H D");
  if (cotangents.lse.given()) sizes.unify(cotangents.lse, "B T H");
  Gradients<T> grad;
  const auto array = [](const StoredTensor& tensor, Array<T>& gradient) {
    if (tensor.given()) gradient = Array<T>(tensor.shape);
  };
  array(setting.query, grad.query);
  array(setting.sources[0].key[0].tensor, grad.kv);
  if (setting.sources.size() > 1) array(setting.sources[1].key[0].tensor, grad.compressed);
  array(setting.sink, grad.sink);
  attention::Targets<T> targets{
      &grad.query, setting.sink.given() ? &grad.sink : nullptr, {&grad.kv}};
  if (setting.sources.size() > 1) targets.keys.push_back(&grad.compressed);
  attention::backward(setting, run, cotangents, targets);
  return grad;
}

#define INSTANTIATE(T) template struct Problem<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_attention
