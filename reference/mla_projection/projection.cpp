#include "reference/mla_projection/projection.hpp"

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/rms_norm/rms_row.hpp"

namespace plumbline::mla_projection {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t dimension(const std::optional<std::int64_t>& value, const std::string& where) {
  if (!value) throw Error(where, "nothing", "a number of channels");
  if (*value < 1) throw Error(where, std::to_string(*value), "a number of channels >= 1");
  return *value;
}

void need(const StoredTensor& tensor, const std::string& name, const std::string& why) {
  if (!tensor.given()) throw Error("in." + name, "nothing", "the tensor: " + why);
}
void exclude(const StoredTensor& tensor, const std::string& why) {
  if (tensor.given()) throw Error(tensor.name, "the tensor", "none: " + why);
}

// (dn + dr)^(−1/2), times (0.1·mscale·ln(factor) + 1)² where the context is longer than in
// training.
template <class T> T query_scale(const Options& options, std::int64_t width) {
  const T scale = rsqrt(constant<T>(static_cast<double>(width)));
  for (const auto& [value, name] :
       {std::pair(options.max_position, "option max_position"),
        std::pair(options.original_max_position, "option original_max_position")}) {
    if (value < 0) throw Error(name, std::to_string(value), "a length > 0, or 0 = not set");
  }
  if (options.original_max_position == 0 || options.max_position <= options.original_max_position)
    return scale;
  if (!options.rope.yarn) {
    throw Error("option rope.yarn", "nothing",
                "yarn: max_position exceeds original_max_position, and mscale needs its factor");
  }
  const T log_factor = natural_log(constant<T>(*options.rope.yarn->factor));
  const T longer = T(1) / T(10) * constant<T>(options.mscale) * log_factor + T(1);
  return scale * longer * longer;
}

}  // namespace

template <class T> Projection<T>::Projection(const Inputs& in, const Options& options, bool sliced)
    : in_(in), eps_(options.eps) {
  check_eps(options.eps);
  dn_ = dimension(options.nope_dim, "option nope_dim");
  dr_ = dimension(options.rope_dim, "option rope_dim");
  dv_ = dimension(options.v_dim, "option v_dim");
  rotation_.emplace(options.rope, dr_);
  if (*options.rope.dim != dr_) {
    throw Error("option rope.dim", std::to_string(*options.rope.dim),
                std::to_string(dr_) + ", the option rope_dim");
  }
  check_query();
  const StoredTensor &weight = direct() ? in.wq : in.wq_b, &bias = direct() ? in.bq : in.bq_b;
  if (sliced) {
    refuse_quantised(weight, "schedule.sliced");
    refuse_quantised(in.wkv_b, "schedule.sliced");
  }
  sizes_.set("dn", dn_, "option nope_dim");
  sizes_.set("dr", dr_, "option rope_dim");
  sizes_.set("dv", dv_, "option v_dim");
  Inputs named = in;
  sizes_.unify_all(named);
  batch_ = sizes_["B"], tokens_ = sizes_["S"], width_ = sizes_["E"], heads_ = sizes_["H"];
  q_rank_ = sizes_.or_else("Rq", 0), kv_rank_ = sizes_["Rkv"];
  if (kv_rank_ < 1) throw Error(in.wkv_b.name, "Rkv = 0", "a latent of at least one channel");
  if (!direct() && q_rank_ < 1)
    throw Error(in.wq_b.name, "Rq = 0", "a latent of at least one channel");
  scale_ = query_scale<T>(options, dn_ + dr_);

  to_query_.emplace(weight, bias, dn_, sliced);
  to_key_value_.emplace(in.wkv_b, in.bkv_b, dn_, sliced);
  if (!direct() && !in.given_q_latent.given()) {
    to_q_latent_.emplace(in.wq_a, in.bq_a, Slice{0, q_rank_});
    q_norm_.resize(place(q_rank_));
    fetch<Exact<T>>(in.q_norm, {}, q_norm_);
  }
  const Slice made{in.given_kv_latent.given() ? kv_rank_ : 0,
                   in.given_k_pe.given() ? kv_rank_ : kv_rank_ + dr_};
  if (made[0] < made[1]) to_kv_.emplace(in.wkv_a, in.bkv_a, made);
  if (made[0] == 0) {
    kv_norm_.resize(place(kv_rank_));
    fetch<Exact<T>>(in.kv_norm, {}, kv_norm_);
  }
}

template <class T> void Projection<T>::check_query() const {
  if (direct()) {
    const std::string why = "in.wq is given, the query has no latent";
    for (const StoredTensor* tensor : {&in_.wq_a, &in_.q_norm, &in_.wq_b, &in_.bq_a, &in_.bq_b})
      exclude(*tensor, why);
    return;
  }
  if (!in_.wq_a.given() && !in_.q_norm.given() && !in_.wq_b.given()) {
    throw Error("in.wq", "nothing", "the tensor, or wq_a, q_norm and wq_b");
  }
  const std::string why = "without in.wq the query takes wq_a, q_norm and wq_b";
  need(in_.wq_a, "wq_a", why);
  need(in_.q_norm, "q_norm", why);
  need(in_.wq_b, "wq_b", why);
  exclude(in_.bq, "it is the bias of in.wq, which is not given");
}

template <class T> std::string Projection<T>::token_name(const char* of, std::int64_t row) const {
  const std::int64_t index[] = {row / tokens_, row % tokens_};
  return std::string(of) + to_string(Index(index)) + " before its norm";
}

template <class T> Tokens<T> Projection<T>::read(std::int64_t first, std::int64_t rows) const {
  Tokens<T> tokens;
  tokens.first = first, tokens.rows = rows;
  if (direct() || to_q_latent_ || to_kv_) {
    tokens.x.resize(place(rows * width_));
    fetch_rows<T>(in_.x, first, rows, tokens.x);
  }
  for (std::int64_t row = first; row < first + rows; ++row) {
    const std::int64_t b = row / tokens_, s = row % tokens_;
    tokens.turns.push_back(
        rotation_->at(in_.positions.given() ? integer_at(in_.positions, {b, s}) : s));
  }
  return tokens;
}

template <class T> void Projection<T>::normalise(const char* name, std::int64_t first,
                                                 std::size_t width, std::size_t stride,
                                                 std::span<const T> raw,
                                                 const std::vector<Exact<T>>& weight,
                                                 Buffer<T>& factor, Buffer<T>& latent) const {
  for (std::size_t n = 0; n < factor.size(); ++n) {
    const std::span<const T> row = raw.subspan(n * stride, width);
    factor[n] = rms_factor<T>(
        row, eps_, [&] { return token_name(name, first + static_cast<std::int64_t>(n)); });
    rms_scale<T>(row, factor[n], weight, std::span<T>(latent).subspan(n * width, width));
  }
}

template <class T> void Projection<T>::make_q_latent(Tokens<T>& tokens) const {
  if (direct()) return;
  tokens.q_latent.resize(place(tokens.rows * q_rank_));
  if (!to_q_latent_) {
    fetch_rows<T>(in_.given_q_latent, tokens.first, tokens.rows, tokens.q_latent);
    return;
  }
  tokens.q_raw.resize(tokens.q_latent.size());
  tokens.q_factor.resize(place(tokens.rows));
  to_q_latent_->apply(tokens.rows, tokens.x, tokens.q_raw);
  normalise("q_latent", tokens.first, place(q_rank_), place(q_rank_), tokens.q_raw, q_norm_,
            tokens.q_factor, tokens.q_latent);
}

template <class T> void Projection<T>::make_kv_latent(Tokens<T>& tokens) const {
  const std::size_t rows = place(tokens.rows), rank = place(kv_rank_), rotary = place(dr_);
  const std::size_t stride = to_kv_ ? place(to_kv_->outputs()) : 0;
  tokens.kv_latent.resize(rows * rank);
  tokens.k_pe.resize(rows * rotary);
  tokens.kv_raw.resize(rows * stride);
  if (to_kv_) to_kv_->apply(tokens.rows, tokens.x, tokens.kv_raw);
  if (in_.given_kv_latent.given()) {
    fetch_rows<T>(in_.given_kv_latent, tokens.first, tokens.rows, tokens.kv_latent);
  } else {
    tokens.kv_factor.resize(rows);
    normalise("kv_latent", tokens.first, rank, stride, tokens.kv_raw, kv_norm_, tokens.kv_factor,
              tokens.kv_latent);
  }
  if (in_.given_k_pe.given()) {
    fetch_rows<T>(in_.given_k_pe, tokens.first, tokens.rows, tokens.k_pe);
    return;
  }
  for (std::size_t n = 0; n < rows; ++n) {
    const std::span<T> row = std::span<T>(tokens.k_pe).subspan(n * rotary, rotary);
    std::copy_n(tokens.kv_raw.data() + (n + 1) * stride - rotary, rotary, row.begin());
    rotation_->apply(tokens.turns[n], row);
  }
}

template <class T>
void Projection<T>::make_query(const Tokens<T>& tokens, std::span<T> query) const {
  const std::size_t rows = place(tokens.rows), heads = place(heads_), nope = place(dn_),
                    rotary = place(dr_);
  Buffer<T> a(rows * heads * nope), b(rows * heads * rotary);
  to_query_->apply(tokens.rows, direct() ? tokens.x : tokens.q_latent, a, b);
  for (std::size_t head = 0; head < rows * heads; ++head) {
    const std::span<T> pe = std::span<T>(b).subspan(head * rotary, rotary);
    rotation_->apply(tokens.turns[head / heads], pe);
    T* to = query.data() + head * (nope + rotary);
    for (std::size_t i = 0; i < nope; ++i) to[i] = a[head * nope + i] * scale_;
    for (std::size_t i = 0; i < rotary; ++i) to[nope + i] = pe[i] * scale_;
  }
}

template <class T> void Projection<T>::make_key_value(const Tokens<T>& tokens, std::span<T> key,
                                                      std::span<T> value) const {
  const std::size_t rows = place(tokens.rows), heads = place(heads_), nope = place(dn_),
                    rotary = place(dr_);
  Buffer<T> a(rows * heads * nope);
  to_key_value_->apply(tokens.rows, tokens.kv_latent, a, value);
  for (std::size_t head = 0; head < rows * heads; ++head) {
    T* to = key.data() + head * (nope + rotary);
    std::copy_n(a.data() + head * nope, nope, to);
    std::copy_n(tokens.k_pe.data() + head / heads * rotary, rotary, to + nope);
  }
}

template <class T>
WeightSums<T>::WeightSums(const Inputs& in, Gradients<T>& grad, std::int64_t rows)
    : wq(in.wq, grad.wq, rows),
      wq_a(in.wq_a, grad.wq_a, rows),
      q_norm(in.q_norm, grad.q_norm, rows),
      wq_b(in.wq_b, grad.wq_b, rows),
      wkv_a(in.wkv_a, grad.wkv_a, rows),
      kv_norm(in.kv_norm, grad.kv_norm, rows),
      wkv_b(in.wkv_b, grad.wkv_b, rows),
      bq(in.bq, grad.bq, rows),
      bq_a(in.bq_a, grad.bq_a, rows),
      bq_b(in.bq_b, grad.bq_b, rows),
      bkv_a(in.bkv_a, grad.bkv_a, rows),
      bkv_b(in.bkv_b, grad.bkv_b, rows) {}

template <class T> void WeightSums<T>::fold() {
  for (WeightSum<T>* sum :
       {&wq, &wq_a, &q_norm, &wq_b, &wkv_a, &kv_norm, &wkv_b, &bq, &bq_a, &bq_b, &bkv_a, &bkv_b}) {
    sum->fold();
  }
}

// query = scale·[nope, R pe]: nope gets scale·d, pe gets Rᵀ(scale·d); then through wq, or wq_b,
// norm and wq_a.
template <class T>
void Projection<T>::pull_back_query(const Tokens<T>& tokens, std::span<const T> dquery,
                                    std::span<T> dq_latent, std::span<T> dx, WeightSums<T>& sums,
                                    std::int64_t shard) const {
  const std::size_t rows = place(tokens.rows), heads = place(heads_), nope = place(dn_),
                    rotary = place(dr_);
  Buffer<T> da(rows * heads * nope), db(rows * heads * rotary);
  for (std::size_t head = 0; head < rows * heads; ++head) {
    const T* from = dquery.data() + head * (nope + rotary);
    const std::span<T> dpe = std::span<T>(db).subspan(head * rotary, rotary);
    for (std::size_t i = 0; i < nope; ++i) da[head * nope + i] = from[i] * scale_;
    for (std::size_t i = 0; i < rotary; ++i) dpe[i] = from[nope + i] * scale_;
    rotation_->pull_back(tokens.turns[head / heads], dpe);
  }
  if (direct()) {
    to_query_->pull_back(tokens.rows, tokens.x, da, db, dx, sums.wq.at(shard), sums.bq.at(shard));
    return;
  }
  to_query_->pull_back(tokens.rows, tokens.q_latent, da, db, dq_latent, sums.wq_b.at(shard),
                       sums.bq_b.at(shard));
  if (!to_q_latent_) return;  // a given latent is a constant
  const std::size_t rank = place(q_rank_);
  Buffer<T> draw(rows * rank);
  for (std::size_t n = 0; n < rows; ++n) {
    rms_pull_back<T>(std::span<const T>(tokens.q_raw).subspan(n * rank, rank), tokens.q_factor[n],
                     q_norm_, dq_latent.subspan(n * rank, rank),
                     std::span<T>(draw).subspan(n * rank, rank), sums.q_norm.values(shard));
  }
  to_q_latent_->pull_back_input(tokens.rows, draw, dx);
  to_q_latent_->pull_back_weight(tokens.rows, tokens.x, draw, sums.wq_a.at(shard));
  to_q_latent_->pull_back_bias(tokens.rows, draw, sums.bq_a.at(shard));
}

// key = [k_nope, k_pe] with one k_pe for all heads: its cotangents add up over the heads.
template <class T>
void Projection<T>::pull_back_key_value(const Tokens<T>& tokens, std::span<const T> dkey,
                                        std::span<const T> dvalue, std::span<T> dkv_latent,
                                        std::span<T> dk_pe, std::span<T> dx, WeightSums<T>& sums,
                                        std::int64_t shard) const {
  const std::size_t rows = place(tokens.rows), heads = place(heads_), nope = place(dn_),
                    rotary = place(dr_);
  Buffer<T> da(rows * heads * nope);
  for (std::size_t head = 0; head < rows * heads; ++head) {
    const T* from = dkey.data() + head * (nope + rotary);
    std::copy_n(from, nope, da.data() + head * nope);
    for (std::size_t i = 0; i < rotary; ++i) dk_pe[head / heads * rotary + i] += from[nope + i];
  }
  to_key_value_->pull_back(tokens.rows, tokens.kv_latent, da, dvalue, dkv_latent,
                           sums.wkv_b.at(shard), sums.bkv_b.at(shard));
  if (!to_kv_) return;
  const std::size_t rank = place(kv_rank_), stride = place(to_kv_->outputs());
  Buffer<T> draw(rows * stride);
  for (std::size_t n = 0; n < rows; ++n) {
    const std::span<T> row = std::span<T>(draw).subspan(n * stride, stride);
    if (!in_.given_kv_latent.given()) {
      rms_pull_back<T>(std::span<const T>(tokens.kv_raw).subspan(n * stride, rank),
                       tokens.kv_factor[n], kv_norm_, dkv_latent.subspan(n * rank, rank),
                       row.first(rank), sums.kv_norm.values(shard));
    }
    if (!in_.given_k_pe.given()) {
      const std::span<T> dpe = row.last(rotary);
      std::copy_n(dk_pe.data() + n * rotary, rotary, dpe.begin());
      rotation_->pull_back(tokens.turns[n], dpe);
    }
  }
  to_kv_->pull_back_input(tokens.rows, draw, dx);
  to_kv_->pull_back_weight(tokens.rows, tokens.x, draw, sums.wkv_a.at(shard));
  to_kv_->pull_back_bias(tokens.rows, draw, sums.bkv_a.at(shard));
}

#define INSTANTIATE(T)           \
  template struct WeightSums<T>; \
  template class Projection<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_projection
