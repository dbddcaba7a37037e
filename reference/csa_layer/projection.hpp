// reference/csa_layer/projection.hpp
//
// What a CSA layer makes of single tokens: query latents, queries and window keys, forward and pulled back.
//     q_latent = rms_norm(x·wq_a, q_norm)      query = rope(rms_norm(q_latent·wq_b))·D^(−1/2), each head normed
//     kv = rope(rms_norm(x·wkv, kv_norm))      without a weight
// Guarantees: tokens are taken in any order and number, each for itself, so that a layer makes those its rows need
// and no other; a block of them holds rows · (E + H·D) numbers.
// Source: DeepSeek-V4 report, section 2.3.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "reference/csa_layer/csa_layer.hpp"
#include "reference/linear/contract.hpp"
#include "reference/linear/weight_sum.hpp"
#include "reference/rope/rotation.hpp"

namespace plumbline::csa_layer {

// Tokens counted over batch and sequence: b·S + s.
using TokenList = std::span<const std::int64_t>;

// Lists of at most a block of tokens each.
std::vector<std::vector<std::int64_t>> blocks_of(TokenList tokens);

// What was made of a block of tokens on the way to its queries, and to its keys.
template <class T> struct Queries {
  TokenList tokens;
  Buffer<T> x, latent_raw, latent_factor, latent;  // [n, E], [n, Rq], [n], [n, Rq]
  Buffer<T> raw, factor;                           // [n, H, D], [n, H]
};
template <class T> struct Keys {
  TokenList tokens;
  Buffer<T> x, raw, factor;  // [n, E], [n, D], [n]
};

// Gradients of the weights, summed over tokens in shards.
template <class T> struct ProjectionSums {
  WeightSum<T> wq_a, q_norm, wq_b, wkv, kv_norm;
  ProjectionSums(const Inputs& in, Gradients<T>& grad, std::int64_t blocks);
  void fold();
};

template <class T> class Projection {
 public:
  // `in` must outlive the projection.
  Projection(const Inputs& in, const Options& options, const Sizes& sizes,
             const Visibility& visibility);

  Queries<T> make_q_latent(TokenList tokens) const;
  void make_query(Queries<T>& block, std::span<T> query) const;
  Keys<T> make_kv(TokenList tokens, std::span<T> kv) const;

  // Cotangents may be overwritten. dx [n, E] is added to; so are the sums of a shard.
  void pull_back_query(const Queries<T>& block, std::span<T> dquery, std::span<T> dx,
                       ProjectionSums<T>& sums, std::int64_t shard) const;
  void pull_back_kv(const Keys<T>& block, std::span<T> dkv, std::span<T> dx,
                    ProjectionSums<T>& sums, std::int64_t shard) const;

  // The inverse rotation of an attention output, and its transpose.
  void turn_back(std::int64_t token, std::span<T> heads) const;
  void turn_back_transposed(std::int64_t token, std::span<T> heads) const;

 private:
  using Turn = typename Rotation<T>::Turn;
  Turn turn_of(const Rotation<T>& rotation, std::int64_t token) const;
  std::string token_name(const char* of, std::int64_t token) const;
  Buffer<T> read(TokenList tokens) const;
  std::span<const T> part(std::span<const T> all, std::size_t n, std::int64_t width) const {
    return all.subspan(n * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
  }
  std::span<T> part(std::span<T> all, std::size_t n, std::int64_t width) const {
    return all.subspan(n * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
  }

  const Inputs& in_;
  const Visibility& visibility_;
  double eps_;
  std::int64_t tokens_, width_, rank_, heads_, channels_;
  T scale_;  // D^(−1/2)
  std::optional<Rotation<T>> rotation_, inverse_;
  std::optional<Contraction<T>> to_latent_, to_query_, to_kv_;
  std::vector<Exact<T>> q_norm_, kv_norm_;
  StoredTensor no_bias_;
};

}  // namespace plumbline::csa_layer
