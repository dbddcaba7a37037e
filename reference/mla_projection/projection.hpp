// reference/mla_projection/projection.hpp
//
// The projections of a block of tokens, stage by stage, forward and pulled back: mla_projection
// calls all of them, a layer those it needs. Tokens are counted over batch and sequence, token n is
// (n / S, n mod S). A block holds rows · (E + widest product) numbers; nothing here is as long as
// the sequence.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "reference/linear/weight_sum.hpp"
#include "reference/mla_projection/head_parts.hpp"
#include "reference/mla_projection/mla_projection.hpp"
#include "reference/rope/rotation.hpp"

namespace plumbline::mla_projection {

// A block of tokens and what was computed of it; a stage that was not called leaves its buffers
// empty.
template <class T> struct Tokens {
  std::int64_t first = 0, rows = 0;
  Buffer<T> x;                                    // [rows, E]
  std::vector<typename Rotation<T>::Turn> turns;  // [rows]
  Buffer<T> q_raw, q_factor, q_latent;            // before the norm, its factor, after it
  Buffer<T> kv_raw, kv_factor, kv_latent,
      k_pe;  // kv_raw holds latent | k_pe, without what is given
};

// Gradients of the weights, summed over tokens in shards.
template <class T> struct WeightSums {
  WeightSum<T> wq, wq_a, q_norm, wq_b, wkv_a, kv_norm, wkv_b, bq, bq_a, bq_b, bkv_a, bkv_b;
  WeightSums(const Inputs& in, Gradients<T>& grad, std::int64_t rows);
  void fold();
};

template <class T> class Projection {
 public:
  // Checks everything but cotangents. `in` must outlive the projection.
  Projection(const Inputs& in, const Options& options, bool sliced);

  const Sizes& sizes() const { return sizes_; }
  std::int64_t rows() const { return batch_ * tokens_; }
  bool direct() const { return in_.wq.given(); }
  std::int64_t key_width() const { return dn_ + dr_; }
  // What a query is multiplied by: (dn + dr)^(−1/2), and the square of mscale's factor where that
  // enters.
  const T& scale() const { return scale_; }

  Tokens<T> read(std::int64_t first, std::int64_t rows) const;
  void make_q_latent(Tokens<T>& tokens) const;   // nothing to do with wq
  void make_kv_latent(Tokens<T>& tokens) const;  // kv_latent and k_pe
  void make_query(const Tokens<T>& tokens, std::span<T> query) const;
  void make_key_value(const Tokens<T>& tokens, std::span<T> key, std::span<T> value) const;

  // Cotangents in, added to dx [rows, E] and the sums of a shard. Cotangents may be overwritten.
  void pull_back_query(const Tokens<T>& tokens, std::span<const T> dquery, std::span<T> dq_latent,
                       std::span<T> dx, WeightSums<T>& sums, std::int64_t shard) const;
  void pull_back_key_value(const Tokens<T>& tokens, std::span<const T> dkey,
                           std::span<const T> dvalue, std::span<T> dkv_latent, std::span<T> dk_pe,
                           std::span<T> dx, WeightSums<T>& sums, std::int64_t shard) const;

 private:
  void check_query() const;
  std::string token_name(const char* of, std::int64_t row) const;
  void normalise(const char* name, std::int64_t first, std::size_t width, std::size_t stride,
                 std::span<const T> raw, const std::vector<Exact<T>>& weight, Buffer<T>& factor,
                 Buffer<T>& latent) const;

  const Inputs& in_;
  double eps_;
  Sizes sizes_;
  std::int64_t batch_ = 0, tokens_ = 0, width_ = 0, heads_ = 0, dn_ = 0, dr_ = 0, dv_ = 0,
               q_rank_ = 0, kv_rank_ = 0;
  T scale_{0};
  std::optional<Rotation<T>> rotation_;
  std::optional<Contraction<T>> to_q_latent_, to_kv_;  // absent where what they make is given
  std::optional<HeadParts<T>> to_query_, to_key_value_;
  std::vector<Exact<T>> q_norm_, kv_norm_;
};

}  // namespace plumbline::mla_projection
