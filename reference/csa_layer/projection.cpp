#include "reference/csa_layer/projection.hpp"

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/rms_norm/rms_row.hpp"

namespace plumbline::csa_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }
std::int64_t count_of_tokens(TokenList tokens) { return static_cast<std::int64_t>(tokens.size()); }

}  // namespace

std::vector<std::vector<std::int64_t>> blocks_of(TokenList tokens) {
  std::vector<std::vector<std::int64_t>> blocks;
  in_chunks(count_of_tokens(tokens), rows_of_a_block, [&](std::int64_t first, std::int64_t last) {
    blocks.emplace_back(tokens.begin() + first, tokens.begin() + last);
  });
  return blocks;
}

template <class T>
ProjectionSums<T>::ProjectionSums(const Inputs& in, Gradients<T>& grad, std::int64_t blocks)
    : wq_a(in.wq_a, grad.wq_a, blocks),
      q_norm(in.q_norm, grad.q_norm, blocks),
      wq_b(in.wq_b, grad.wq_b, blocks),
      wkv(in.wkv, grad.wkv, blocks),
      kv_norm(in.kv_norm, grad.kv_norm, blocks) {}

template <class T> void ProjectionSums<T>::fold() {
  for (WeightSum<T>* sum : {&wq_a, &q_norm, &wq_b, &wkv, &kv_norm}) sum->fold();
}

template <class T> Projection<T>::Projection(const Inputs& in, const Options& options,
                                             const Sizes& sizes, const Visibility& visibility)
    : in_(in),
      visibility_(visibility),
      eps_(options.eps),
      tokens_(sizes["S"]),
      width_(sizes["E"]),
      rank_(sizes["Rq"]),
      heads_(sizes["H"]),
      channels_(sizes["D"]),
      scale_(rsqrt(constant<T>(static_cast<double>(sizes["D"])))),
      q_norm_(place(rank_)),
      kv_norm_(place(channels_)) {
  if (rank_ < 1) throw Error(in.wq_b.name, "Rq = 0", "a latent of at least one channel");
  check_eps(options.eps);
  rotation_.emplace(options.rope, channels_);
  RopeOptions back = options.rope;
  back.inverse = !back.inverse;
  inverse_.emplace(back, channels_);
  const auto whole = [&](const StoredTensor& weight) {
    return Contraction<T>(weight, no_bias_, columns_of(weight, std::nullopt, ""));
  };
  to_latent_.emplace(whole(in.wq_a));
  to_query_.emplace(whole(in.wq_b));
  to_kv_.emplace(whole(in.wkv));
  fetch<Exact<T>>(in.q_norm, {}, q_norm_);
  fetch<Exact<T>>(in.kv_norm, {}, kv_norm_);
}

template <class T> typename Projection<T>::Turn Projection<T>::turn_of(const Rotation<T>& rotation,
                                                                       std::int64_t token) const {
  return rotation.at(visibility_.position(token / tokens_, token % tokens_));
}

template <class T> std::string Projection<T>::token_name(const char* of, std::int64_t token) const {
  const std::int64_t index[] = {token / tokens_, token % tokens_};
  return std::string(of) + to_string(Index(index)) + " before its norm";
}

template <class T> Buffer<T> Projection<T>::read(TokenList tokens) const {
  Buffer<T> x(tokens.size() * place(width_));
  for (std::size_t n = 0; n < tokens.size(); ++n)
    fetch_rows<T>(in_.x, tokens[n], 1, part(std::span<T>(x), n, width_));
  return x;
}

template <class T> Queries<T> Projection<T>::make_q_latent(TokenList tokens) const {
  Queries<T> block;
  block.tokens = tokens;
  const std::size_t count = tokens.size();
  block.latent.resize(count * place(rank_));
  if (in_.given_q_latent.given()) {
    for (std::size_t n = 0; n < count; ++n) {
      fetch_rows<T>(in_.given_q_latent, tokens[n], 1, part(std::span<T>(block.latent), n, rank_));
    }
    return block;
  }
  block.x = read(tokens);
  block.latent_raw.resize(block.latent.size());
  block.latent_factor.resize(count);
  to_latent_->apply(count_of_tokens(tokens), block.x, block.latent_raw);
  for (std::size_t n = 0; n < count; ++n) {
    const std::span<const T> raw = part(std::span<const T>(block.latent_raw), n, rank_);
    block.latent_factor[n] =
        rms_factor<T>(raw, eps_, [&] { return token_name("q_latent", tokens[n]); });
    rms_scale<T>(raw, block.latent_factor[n], q_norm_, part(std::span<T>(block.latent), n, rank_));
  }
  return block;
}

template <class T> void Projection<T>::make_query(Queries<T>& block, std::span<T> query) const {
  const std::size_t count = block.tokens.size(), heads = place(heads_);
  block.raw.resize(query.size());
  block.factor.resize(count * heads);
  to_query_->apply(count_of_tokens(block.tokens), block.latent, block.raw);
  const std::vector<Exact<T>> unweighted;
  for (std::size_t n = 0; n < count; ++n) {
    const Turn turn = turn_of(*rotation_, block.tokens[n]);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t row = n * heads + h;
      const std::span<const T> raw = part(std::span<const T>(block.raw), row, channels_);
      const std::span<T> q = part(query, row, channels_);
      block.factor[row] =
          rms_factor<T>(raw, eps_, [&] { return token_name("query", block.tokens[n]); });
      rms_scale<T>(raw, block.factor[row], unweighted, q);
      rotation_->apply(turn, q);
      for (T& value : q) value = round_at(Point::proj_out, T(value * scale_));
    }
  }
}

template <class T> Keys<T> Projection<T>::make_kv(TokenList tokens, std::span<T> kv) const {
  Keys<T> block;
  block.tokens = tokens;
  block.x = read(tokens);
  block.raw.resize(kv.size());
  block.factor.resize(tokens.size());
  to_kv_->apply(count_of_tokens(tokens), block.x, block.raw);
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const std::span<const T> raw = part(std::span<const T>(block.raw), n, channels_);
    block.factor[n] = rms_factor<T>(raw, eps_, [&] { return token_name("kv", tokens[n]); });
    rms_scale<T>(raw, block.factor[n], kv_norm_, part(kv, n, channels_));
    rotation_->apply(turn_of(*rotation_, tokens[n]), part(kv, n, channels_));
  }
  return block;
}

template <class T> void Projection<T>::pull_back_query(const Queries<T>& block, std::span<T> dquery,
                                                       std::span<T> dx, ProjectionSums<T>& sums,
                                                       std::int64_t shard) const {
  const std::size_t count = block.tokens.size(), heads = place(heads_);
  const std::int64_t rows = count_of_tokens(block.tokens);
  const std::vector<Exact<T>> unweighted;
  Buffer<T> draw(block.raw.size()), dlatent(block.latent.size());
  for (std::size_t n = 0; n < count; ++n) {
    const Turn turn = turn_of(*rotation_, block.tokens[n]);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t row = n * heads + h;
      const std::span<T> dq = part(dquery, row, channels_);
      for (T& value : dq) value *= scale_;
      rotation_->pull_back(turn, dq);
      rms_pull_back<T>(part(std::span<const T>(block.raw), row, channels_), block.factor[row],
                       unweighted, dq, part(std::span<T>(draw), row, channels_), {});
    }
  }
  to_query_->pull_back_weight(rows, block.latent, draw, sums.wq_b.at(shard));
  if (in_.given_q_latent.given()) return;
  to_query_->pull_back_input(rows, draw, dlatent);
  Buffer<T> dlatent_raw(block.latent_raw.size());
  for (std::size_t n = 0; n < count; ++n) {
    rms_pull_back<T>(part(std::span<const T>(block.latent_raw), n, rank_), block.latent_factor[n],
                     q_norm_, part(std::span<const T>(dlatent), n, rank_),
                     part(std::span<T>(dlatent_raw), n, rank_), sums.q_norm.values(shard));
  }
  to_latent_->pull_back_input(rows, dlatent_raw, dx);
  to_latent_->pull_back_weight(rows, block.x, dlatent_raw, sums.wq_a.at(shard));
}

template <class T> void Projection<T>::pull_back_kv(const Keys<T>& block, std::span<T> dkv,
                                                    std::span<T> dx, ProjectionSums<T>& sums,
                                                    std::int64_t shard) const {
  const std::int64_t rows = count_of_tokens(block.tokens);
  Buffer<T> draw(block.raw.size());
  for (std::size_t n = 0; n < block.tokens.size(); ++n) {
    const std::span<T> d = part(dkv, n, channels_);
    rotation_->pull_back(turn_of(*rotation_, block.tokens[n]), d);
    rms_pull_back<T>(part(std::span<const T>(block.raw), n, channels_), block.factor[n], kv_norm_,
                     d, part(std::span<T>(draw), n, channels_), sums.kv_norm.values(shard));
  }
  to_kv_->pull_back_input(rows, draw, dx);
  to_kv_->pull_back_weight(rows, block.x, draw, sums.wkv.at(shard));
}

template <class T> void Projection<T>::turn_back(std::int64_t token, std::span<T> heads) const {
  const Turn turn = turn_of(*inverse_, token);
  for (std::size_t h = 0; h < place(heads_); ++h) inverse_->apply(turn, part(heads, h, channels_));
}
template <class T>
void Projection<T>::turn_back_transposed(std::int64_t token, std::span<T> heads) const {
  const Turn turn = turn_of(*inverse_, token);
  for (std::size_t h = 0; h < place(heads_); ++h)
    inverse_->pull_back(turn, part(heads, h, channels_));
}

#define INSTANTIATE(T)               \
  template struct ProjectionSums<T>; \
  template class Projection<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
