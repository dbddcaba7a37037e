#include "reference/csa_indexer/tokens.hpp"

#include <algorithm>
#include <numeric>

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_indexer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class Values>
auto rows_of(Values& values, std::int64_t first, std::int64_t count, std::int64_t width) {
  return std::span(values).subspan(place(first * width), place(count * width));
}

}  // namespace

template <class T> Tokens<T>::Tokens(const Inputs& in, const Options& options, RowNote otherwise,
                                     const std::string& where)
    : in_(in) {
  checked_k(options.k, where + "k");
  const csa_compress::Options compression = options.compression();
  const Blocks blocks = csa_compress::blocks_of(compression, in.mask, where);
  parts_.position_bias = in.position_bias;
  parts_.norm_weight = in.kv_norm_weight;
  csa_compress::check_parts(parts_, compression, where);
  sizes_.set("m", blocks.m, where + "m");
  if (in.mask.row_index.given()) sizes_.set("T", in.mask.row_index.size(0), in.mask.row_index.name);
  if (in.given.indices.given()) sizes_.set("k", *options.k, where + "k");
  sizes_.unify(in_.x, "B S E");
  if (!in.mask.row_index.given()) sizes_.set("T", sizes_["S"], "S, without in.row_index");
  sizes_.unify_all(in_);
  check_slots(*options.k, sizes_["B"] * sizes_["T"], where + "k");
  visibility_.emplace(options.mask, in.mask, sizes_, blocks);
  rotation_.emplace(options.rope, sizes_["e"], where + "rope");
  compressor_.emplace(*visibility_, parts_, compression, sizes_["e"], where);
  seen_ = csa_compress::seen_blocks(*visibility_);

  RowNotes notes = visibility_->notes(RowNote::unread);
  compressor_->mark_read(seen_, notes);
  std::replace(notes.begin(), notes.end(), RowNote::unread, otherwise);
  if (!in.x.notes) in_.x.notes = std::make_shared<const RowNotes>(std::move(notes));
  if (in_.q_latent.dtype != Dtype::working)
    in_.q_latent.notes = std::make_shared<const RowNotes>(visibility_->row_notes(otherwise));
  in_.given.index_q.notes = in_.given.index_w.notes =
      std::make_shared<const RowNotes>(visibility_->row_notes(RowNote::unread));
  RowNotes of_blocks(seen_.size(), RowNote::unread);
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i] != 0) of_blocks[i] = RowNote::as_stored;
  }
  in_.given.index_k.notes = std::make_shared<const RowNotes>(std::move(of_blocks));

  to_q_.emplace(in_.q_proj, no_bias_, columns_of(in_.q_proj, std::nullopt, ""));
  to_w_.emplace(in_.weights_proj, no_bias_, columns_of(in_.weights_proj, std::nullopt, ""));
  projected_.emplace(in_.x, in_.kv_proj, in_.gate_proj);
}

template <class T> typename Tokens<T>::Turn Tokens<T>::turn_of(std::int64_t token) const {
  return rotation_->at(visibility_->position(token / sizes_["S"], token % sizes_["S"]));
}

template <class T> typename Tokens<T>::Rows Tokens<T>::all() const {
  Rows rows(place(sizes_["B"] * sizes_["S"]));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

template <class T> template <class F>
void Tokens<T>::each(const Rows& tokens, std::int64_t first, std::int64_t last, F f) {
  for (std::int64_t n = first; n < last; ++n) {
    if (tokens[place(n)] >= 0) f(n, tokens[place(n)]);
  }
}

template <class T> void Tokens<T>::make_q(const Run& run, const Rows& tokens,
                                          const StoredTensor& latent, Array<T>& index_q) const {
  const std::int64_t rank = sizes_["Rq"], heads = sizes_["A"], width = sizes_["e"];
  for_each_block(
      run, static_cast<std::int64_t>(tokens.size()), [&](std::int64_t first, std::int64_t last) {
        const std::span<T> q = rows_of(index_q.values, first, last - first, heads * width);
        if (in_.given.index_q.given()) {
          each(tokens, first, last, [&](std::int64_t n, std::int64_t token) {
            fetch_rows<T>(in_.given.index_q, token * heads, heads,
                          rows_of(q, n - first, 1, heads * width));
          });
          return;
        }
        Buffer<T> from(place((last - first) * rank));
        each(tokens, first, last, [&](std::int64_t n, std::int64_t) {
          fetch_rows<T>(latent, n, 1, rows_of(from, n - first, 1, rank));
        });
        to_q_->apply(last - first, from, q);
        each(tokens, first, last, [&](std::int64_t n, std::int64_t token) {
          const Turn turn = turn_of(token);
          for (std::int64_t a = 0; a < heads; ++a)
            rotation_->apply(turn, rows_of(q, (n - first) * heads + a, 1, width));
        });
      });
}

template <class T>
void Tokens<T>::make_k(const Run& run, const Chosen& blocks, Array<T>& index_k) const {
  if (!in_.given.index_k.given()) {
    compressor_->make(run, projected_->source(), blocks, index_k);
    return;
  }
  const std::int64_t width = sizes_["e"];
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    if (blocks[i] != 0)
      fetch_rows<T>(in_.given.index_k, row, 1, rows_of(index_k.values, row, 1, width));
  }
}

template <class T>
void Tokens<T>::make_w(const Run& run, const Rows& tokens, Array<T>& index_w) const {
  const std::int64_t in_width = sizes_["E"], heads = sizes_["A"];
  for_each_block(
      run, static_cast<std::int64_t>(tokens.size()), [&](std::int64_t first, std::int64_t last) {
        const std::span<T> w = rows_of(index_w.values, first, last - first, heads);
        const bool given = in_.given.index_w.given();
        Buffer<T> x(given ? 0 : place((last - first) * in_width));
        each(tokens, first, last, [&](std::int64_t n, std::int64_t token) {
          fetch_rows<T>(
              given ? in_.given.index_w : in_.x, token, 1,
              given ? rows_of(w, n - first, 1, heads) : rows_of(x, n - first, 1, in_width));
        });
        if (!given) to_w_->apply(last - first, x, w);
      });
}

template <class T> void Tokens<T>::pull_back(const Run& run, const Rows& tokens,
                                             const StoredTensor& latent, const Array<T>& dq,
                                             const Array<T>& dk, const Array<T>& dw,
                                             Gradients<T>& grad) const {
  const std::int64_t in_width = sizes_["E"], rank = sizes_["Rq"], heads = sizes_["A"],
                     width = sizes_["e"], rows = static_cast<std::int64_t>(tokens.size());
  grad.x = Array<T>(in_.x.shape);
  grad.q_latent = Array<T>(latent.shape);
  WeightSum<T> q_proj(in_.q_proj, grad.q_proj, rows),
      weights_proj(in_.weights_proj, grad.weights_proj, rows);
  for_each_shard(run, rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    in_chunks(end - begin, rows_of_a_block, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t first = begin + from, last = begin + to, count = to - from;
      if (!in_.given.index_q.given()) {
        Buffer<T> x(place(count * rank)), dproduct(place(count * heads * width));
        each(tokens, first, last, [&](std::int64_t n, std::int64_t token) {
          fetch_rows<T>(latent, n, 1, rows_of(x, n - first, 1, rank));
          const std::span<T> d = rows_of(dproduct, n - first, 1, heads * width);
          const std::span<const T> given = rows_of(dq.values, n, 1, heads * width);
          std::copy(given.begin(), given.end(), d.begin());
          const Turn turn = turn_of(token);
          for (std::int64_t a = 0; a < heads; ++a)
            rotation_->pull_back(turn, rows_of(d, a, 1, width));
        });
        to_q_->pull_back_input(count, dproduct, rows_of(grad.q_latent.values, first, count, rank));
        to_q_->pull_back_weight(count, x, dproduct, q_proj.at(shard));
      }
      if (!in_.given.index_w.given()) {
        Buffer<T> x(place(count * in_width)), dx(x.size()), d(place(count * heads));
        each(tokens, first, last, [&](std::int64_t n, std::int64_t token) {
          fetch_rows<T>(in_.x, token, 1, rows_of(x, n - first, 1, in_width));
          const std::span<const T> given = rows_of(dw.values, n, 1, heads);
          std::copy(given.begin(), given.end(), rows_of(d, n - first, 1, heads).begin());
        });
        to_w_->pull_back_input(count, d, dx);
        to_w_->pull_back_weight(count, x, d, weights_proj.at(shard));
        each(tokens, first, last, [&](std::int64_t n, std::int64_t token) {
          const std::span<const T> row = rows_of(dx, n - first, 1, in_width);
          std::copy(row.begin(), row.end(), rows_of(grad.x.values, token, 1, in_width).begin());
        });
      }
    });
  });
  q_proj.fold();
  weights_proj.fold();
  pull_back_k(run, dk, grad);
}

template <class T>
void Tokens<T>::pull_back_k(const Run& run, const Array<T>& dk, Gradients<T>& grad) const {
  Chosen chosen = compressor_->all();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto given = rows_of(dk.values, static_cast<std::int64_t>(i), 1, sizes_["e"]);
    const bool any =
        std::any_of(given.begin(), given.end(), [](const T& d) { return !is_zero(d); });
    chosen[i] = any && !in_.given.index_k.given() ? 1 : 0;
  }
  WeightSum<T> kv_proj(in_.kv_proj, grad.kv_proj, compressor_->blocks()),
      gate_proj(in_.gate_proj, grad.gate_proj, compressor_->blocks());
  csa_compress::PartGradients<T> parts;
  compressor_->pull_back(run, projected_->source(), chosen, dk,
                         projected_->receiver(&grad.x, kv_proj, gate_proj), parts);
  kv_proj.fold();
  gate_proj.fold();
  grad.position_bias = std::move(parts.position_bias);
  grad.kv_norm_weight = std::move(parts.norm_weight);
}

#define INSTANTIATE(T) template class Tokens<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_indexer
