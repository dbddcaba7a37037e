// reference/mla_attention/latent.hpp
//
// The latent form, key = [latent·W_K + b_K, k_pe] and value = latent·W_V + b_V with wkv_b =
// [W_K, W_V], worked two ways that are one function:
//   Expanded   every key and value that some row attends to is made once: [B, S, H, dn + dv]
//   Absorbed   nothing is expanded:
//                  q_nope·(latent·W_K + b_K)  = (W_K q_nope)·latent + q_nope·b_K
//                  Σ p (latent·W_V + b_V)     = (Σ p latent)·W_V + (Σ p) b_V
//              With a bias, latent and weights have one channel more, which is 1 and the bias.
#pragma once
#include <memory>

#include "reference/attention/attention.hpp"
#include "reference/operation/shards.hpp"

namespace plumbline::mla_attention {

struct Latent {
  StoredTensor kv_latent, k_pe, wkv_b, bkv_b;  // bkv_b may be absent
  std::int64_t batch, tokens, heads, rank, nope, rope, value;
  std::int64_t made() const { return nope + value; }  // channels of wkv_b
  std::int64_t rows() const { return rank + (bkv_b.given() ? 1 : 0); }
};

// Row r of [wkv_b; bkv_b] for one head, channels [first, first + to.size()).
template <class T> void fetch_weights(const Latent& latent, std::int64_t r, std::int64_t head,
                                      std::int64_t first, std::span<T> to) {
  if (r < latent.rank) {
    fetch<T>(latent.wkv_b, {r, head}, first, to);
  } else {
    fetch<T>(latent.bkv_b, {head}, first, to);
  }
}
template <class T> struct WeightGradients {
  Array<T>*wkv_b, *bkv_b;  // bkv_b null without a bias
};

template <class T> class Absorbed final : public attention::HeadMap<T> {
 public:
  using Back = typename attention::HeadMap<T>::Back;
  explicit Absorbed(const Latent& latent) : latent_(latent) {}
  std::vector<attention::Source> sources() const;  // gradients: 0 kv_latent, 1 k_pe
  std::int64_t key_width() const override { return latent_.rows() + latent_.rope; }
  std::int64_t value_width() const override { return latent_.rows(); }
  void query(std::int64_t head, std::span<const T> query, std::span<T> to) const override;
  void output(std::int64_t head, std::span<const T> sum, std::span<T> to) const override;
  void cotangent(std::int64_t head, std::span<const T> cotangent, std::span<T> to) const override;

  void take_gradients(const WeightGradients<T>& to, std::int64_t rows);
  void pull_back(std::int64_t shard, std::int64_t head, const Back& back) override;
  void fold();

 private:
  Latent latent_;
  std::unique_ptr<Shards<T>> weights_, bias_;
};

template <class T> class Expanded {
 public:
  // seen [B·S]: tokens that some row attends to; the others are never read.
  Expanded(const Latent& latent, std::vector<char> seen, const Run& run);
  std::vector<attention::Source> sources() const;  // gradients: 0 the expanded rows, 1 k_pe
  const Shape& shape() const { return rows_.shape; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(rows_.values.size() * sizeof(T)); }
  // From the gradient of the expanded rows.
  void pull_back(const Array<T>& gradient, Array<T>& kv_latent, const WeightGradients<T>& weights,
                 const Run& run) const;

 private:
  template <class F> void each_tile(const Run& run, F f) const;

  Latent latent_;
  std::vector<char> seen_;
  Array<T> rows_;  // [B, S, H, dn + dv]
};

}  // namespace plumbline::mla_attention
