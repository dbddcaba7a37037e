#include "reference/mla_attention/latent.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_attention {
namespace {
constexpr std::int64_t tile = 16;  // tokens that one conversion of a row of weights serves
}

// f(tokens): the seen tokens [B·S] in tiles, ascending; tiles may run on any thread.
template <class T> template <class F> void Expanded<T>::each_tile(const Run& run, F f) const {
  const auto count = static_cast<std::int64_t>(seen_.size());
  for_each_row(run, (count + tile - 1) / tile, [&](std::int64_t i) {
    std::vector<std::int64_t> tokens;
    for (std::int64_t token = i * tile; token < std::min(count, (i + 1) * tile); ++token) {
      if (seen_[static_cast<std::size_t>(token)] != 0) tokens.push_back(token);
    }
    if (!tokens.empty()) f(tokens);
  });
}

template <class T>
Expanded<T>::Expanded(const Latent& latent, std::vector<char> seen, const Run& run)
    : latent_(latent),
      seen_(std::move(seen)),
      rows_({latent.batch, latent.tokens, latent.heads, latent.made()}) {
  const auto rank = static_cast<std::size_t>(latent_.rank),
             made = static_cast<std::size_t>(latent_.made());
  const std::int64_t tokens_in_all = latent_.tokens;
  each_tile(run, [&](const std::vector<std::int64_t>& tokens) {
    Buffer<T> x(tokens.size() * rank), w(made);
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      fetch<T>(latent_.kv_latent, {tokens[n] / tokens_in_all, tokens[n] % tokens_in_all},
               std::span<T>(x).subspan(n * rank, rank));
      ++this_work().rows_fetched;
    }
    for (std::int64_t h = 0; h < latent_.heads; ++h) {
      for (std::int64_t r = 0; r < latent_.rows(); ++r) {
        fetch_weights<T>(latent_, r, h, 0, w);
        for (std::size_t n = 0; n < tokens.size(); ++n) {
          const T factor = r < latent_.rank ? x[n * rank + static_cast<std::size_t>(r)] : T(1);
          T* to =
              rows_.row({tokens[n] / tokens_in_all, tokens[n] % tokens_in_all, h}, latent_.made())
                  .data();
          for (std::size_t o = 0; o < made; ++o) to[o] += factor * w[o];
        }
      }
    }
  });
}

template <class T> std::vector<attention::Source> Expanded<T>::sources() const {
  const StoredTensor rows = view(rows_, "expanded keys and values");
  const attention::Part nope{rows, 0, latent_.nope, 0}, pe{latent_.k_pe, 0, latent_.rope, 1},
      value{rows, latent_.nope, latent_.value, 0};
  return {attention::Source{{nope, pe}, {value}}};
}

// d latent = Σ_h dE W, one token at a time; dW = Σ_s latentᵀ dE, one head at a time, tokens
// ascending.
template <class T> void Expanded<T>::pull_back(const Array<T>& gradient, Array<T>& kv_latent,
                                               const WeightGradients<T>& weights,
                                               const Run& run) const {
  const std::int64_t made = latent_.made(), tokens_in_all = latent_.tokens;
  each_tile(run, [&](const std::vector<std::int64_t>& tokens) {
    Buffer<T> w(static_cast<std::size_t>(made));
    for (std::int64_t h = 0; h < latent_.heads; ++h) {
      for (std::int64_t r = 0; r < latent_.rank; ++r) {
        fetch_weights<T>(latent_, r, h, 0, w);
        for (const std::int64_t token : tokens) {
          const std::int64_t b = token / tokens_in_all, s = token % tokens_in_all;
          kv_latent({b, s, r}) += dot<T>(w, gradient.row({b, s, h}, made));
        }
      }
    }
  });
  for_each_row(run, latent_.heads, [&](std::int64_t h) {
    Buffer<T> x(static_cast<std::size_t>(latent_.rank));
    for (std::int64_t token = 0; token < static_cast<std::int64_t>(seen_.size()); ++token) {
      if (seen_[static_cast<std::size_t>(token)] == 0) continue;
      const std::int64_t b = token / tokens_in_all, s = token % tokens_in_all;
      fetch<T>(latent_.kv_latent, {b, s}, x);
      const std::span<const T> from = gradient.row({b, s, h}, made);
      for (std::int64_t r = 0; r < latent_.rows(); ++r) {
        const T factor = r < latent_.rank ? x[static_cast<std::size_t>(r)] : T(1);
        const std::span<T> to =
            r < latent_.rank ? weights.wkv_b->row({r, h}, made) : weights.bkv_b->row({h}, made);
        for (std::size_t o = 0; o < to.size(); ++o) to[o] += factor * from[o];
      }
    }
  });
}

#define INSTANTIATE(T) template class Expanded<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_attention
