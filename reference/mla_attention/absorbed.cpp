#include "reference/mla_attention/latent.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_attention {

template <class T> std::vector<attention::Source> Absorbed<T>::sources() const {
  const attention::Part latent{latent_.kv_latent, 0, latent_.rank, 0}, one{},
      pe{latent_.k_pe, 0, latent_.rope, 1};
  if (!latent_.bkv_b.given()) return {attention::Source{{latent, pe}, {latent}}};
  return {attention::Source{{latent, one, pe}, {latent, one}}};
}

// [W_K q_nope, q_nope·b_K, q_pe]
template <class T>
void Absorbed<T>::query(std::int64_t head, std::span<const T> query, std::span<T> to) const {
  const auto nope = static_cast<std::size_t>(latent_.nope);
  Buffer<T> w(nope);
  std::size_t at = 0;
  for (std::int64_t r = 0; r < latent_.rows(); ++r) {
    fetch_weights<T>(latent_, r, head, 0, w);
    to[at++] = dot<T>(query.first(nope), w);
  }
  for (const T& channel : query.subspan(nope)) to[at++] = channel;
}

template <class T>
void Absorbed<T>::output(std::int64_t head, std::span<const T> sum, std::span<T> to) const {
  Buffer<T> w(to.size());
  for (T& x : to) x = T(0);
  for (std::int64_t r = 0; r < latent_.rows(); ++r) {
    fetch_weights<T>(latent_, r, head, latent_.nope, w);
    for (std::size_t d = 0; d < to.size(); ++d) to[d] += sum[static_cast<std::size_t>(r)] * w[d];
  }
}

// g·(latent·W_V + b_V) = (W_V g)·latent + g·b_V
template <class T> void Absorbed<T>::cotangent(std::int64_t head, std::span<const T> cotangent,
                                               std::span<T> to) const {
  Buffer<T> w(cotangent.size());
  for (std::int64_t r = 0; r < latent_.rows(); ++r) {
    fetch_weights<T>(latent_, r, head, latent_.nope, w);
    to[static_cast<std::size_t>(r)] = dot<T>(cotangent, w);
  }
}

template <class T>
void Absorbed<T>::take_gradients(const WeightGradients<T>& to, std::int64_t rows) {
  weights_ = std::make_unique<Shards<T>>(*to.wkv_b, rows);
  if (to.bkv_b != nullptr) bias_ = std::make_unique<Shards<T>>(*to.bkv_b, rows);
}
template <class T> void Absorbed<T>::fold() {
  weights_->fold();
  if (bias_) bias_->fold();
}

// With y = Σ ds·[latent, 1] and u = Σ p·[latent, 1]: dq_nope = W_Kᵀ y, dW_K = y q_nopeᵀ, dW_V = u
// gᵀ.
template <class T>
void Absorbed<T>::pull_back(std::int64_t shard, std::int64_t head, const Back& back) {
  const auto nope = static_cast<std::size_t>(latent_.nope),
             rows = static_cast<std::size_t>(latent_.rows());
  Buffer<T> w(nope);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::int64_t row = static_cast<std::int64_t>(r);
    fetch_weights<T>(latent_, row, head, 0, w);
    const std::span<T> dw = row < latent_.rank ? (*weights_)[shard].row({row, head}, latent_.made())
                                               : (*bias_)[shard].row({head}, latent_.made());
    const T& y = back.key_gradient[r];
    const T& u = back.value_sum[r];
    for (std::size_t i = 0; i < nope; ++i) {
      back.query_gradient[i] += y * w[i];
      dw[i] += leave(T(y * back.query[i]));
    }
    for (std::size_t d = 0; d < back.cotangent.size(); ++d)
      dw[nope + d] += leave(T(u * back.cotangent[d]));
  }
  for (std::size_t i = nope; i < back.query_gradient.size(); ++i) {
    back.query_gradient[i] += back.key_gradient[rows + i - nope];
  }
}

#define INSTANTIATE(T) template class Absorbed<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_attention
