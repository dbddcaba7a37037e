#include "reference/dsa_indexer/tokens.hpp"

#include <algorithm>

#include "reference/error.hpp"
#include "reference/layer_norm/layer_row.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::dsa_indexer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
std::span<T> rows_of(Array<T>& array, std::int64_t first, std::int64_t count, std::int64_t width) {
  return std::span<T>(array.values).subspan(place(first * width), place(count * width));
}
template <class T> std::span<const T> rows_of(const Array<T>& array, std::int64_t first,
                                              std::int64_t count, std::int64_t width) {
  return std::span<const T>(array.values).subspan(place(first * width), place(count * width));
}

}  // namespace

template <class T> Tokens<T>::Tokens(const Inputs& in, const Options& options, RowNote otherwise,
                                     const std::string& where)
    : in_(in), eps_(options.eps) {
  checked_k(options.k, where + "k");
  check_eps(options.eps, where + "eps");
  if (in.mask.row_index.given()) sizes_.set("T", in.mask.row_index.size(0), in.mask.row_index.name);
  if (in.given.indices.given()) {
    sizes_.set("k", *options.k, "option k");
  }
  sizes_.unify(in_.x, "B S E");
  if (!in.mask.row_index.given()) sizes_.set("T", sizes_["S"], "S, without in.row_index");
  sizes_.unify_all(in_);
  check_slots(*options.k, sizes_["B"] * sizes_["T"], where + "k");
  visibility_.emplace(options.mask, in.mask, sizes_, Blocks{});
  rotation_.emplace(options.rope, sizes_["e"], where + "rope");
  if (!in.x.notes) in_.x.notes = std::make_shared<const RowNotes>(visibility_->notes(otherwise));
  if (in_.q_latent.dtype != Dtype::working)
    in_.q_latent.notes = std::make_shared<const RowNotes>(visibility_->row_notes(otherwise));
  in_.given.index_k.notes = std::make_shared<const RowNotes>(visibility_->notes(RowNote::unread));
  in_.given.index_q.notes = in_.given.index_w.notes =
      std::make_shared<const RowNotes>(visibility_->row_notes(RowNote::unread));
  to_q_.emplace(in_.wq_b, no_bias_, columns_of(in_.wq_b, std::nullopt, ""));
  to_k_.emplace(in_.wk, no_bias_, columns_of(in_.wk, std::nullopt, ""));
  to_w_.emplace(in_.weights_proj, no_bias_, columns_of(in_.weights_proj, std::nullopt, ""));
}

template <class T> typename Tokens<T>::Turn Tokens<T>::turn_of(std::int64_t row) const {
  return rotation_->at(visibility_->position(row / sizes_["S"], row % sizes_["S"]));
}

template <class T> std::string Tokens<T>::place_of(std::int64_t row) const {
  return "in.x·in.wk, token " + to_string(lead_of(in_.x, row));
}

template <class T> typename Tokens<T>::Runs Tokens<T>::all() const {
  Runs runs;
  in_chunks(rows(), rows_of_a_block, [&](std::int64_t first, std::int64_t last) {
    runs.push_back({first, last});
  });
  return runs;
}

template <class T>
void Tokens<T>::make_q(const Run& run, const Runs& tokens, Array<T>& index_q) const {
  const std::int64_t rank = sizes_["Rq"], heads = sizes_["A"], width = sizes_["e"];
  for_each_row(run, static_cast<std::int64_t>(tokens.size()), [&](std::int64_t i) {
    const auto [first, last] = tokens[place(i)];
    const std::span<T> q = rows_of(index_q, first, last - first, heads * width);
    if (in_.given.index_q.given()) {
      fetch_rows<T>(in_.given.index_q, first * heads, (last - first) * heads, q);
      return;
    }
    Buffer<T> latent(place((last - first) * rank));
    fetch_rows<T>(in_.q_latent, first, last - first, latent);
    to_q_->apply(last - first, latent, q);
    for (std::int64_t row = first; row < last; ++row) {
      const Turn turn = turn_of(row);
      for (std::int64_t a = 0; a < heads; ++a) {
        rotation_->apply(turn, q.subspan(place(((row - first) * heads + a) * width), place(width)));
      }
    }
  });
}

template <class T>
void Tokens<T>::make_k(const Run& run, const Runs& tokens, Array<T>& index_k) const {
  const std::int64_t in_width = sizes_["E"], width = sizes_["e"];
  Buffer<Exact<T>> weight(place(width)), bias(place(width));
  fetch<Exact<T>>(in_.k_norm_weight, {}, weight);
  fetch<Exact<T>>(in_.k_norm_bias, {}, bias);
  for_each_row(run, static_cast<std::int64_t>(tokens.size()), [&](std::int64_t i) {
    const auto [first, last] = tokens[place(i)];
    const std::span<T> k = rows_of(index_k, first, last - first, width);
    if (in_.given.index_k.given()) {
      fetch_rows<T>(in_.given.index_k, first, last - first, k);
      return;
    }
    Buffer<T> x(place((last - first) * in_width));
    fetch_rows<T>(in_.x, first, last - first, x);
    to_k_->apply(last - first, x, k);
    for (std::int64_t row = first; row < last; ++row) {
      const std::span<T> key = k.subspan(place((row - first) * width), place(width));
      const LayerMoments<T> moments(key, eps_, [&] { return place_of(row); });
      moments.scale(key, weight, bias, key);
      rotation_->apply(turn_of(row), key);
    }
  });
}

template <class T>
void Tokens<T>::make_w(const Run& run, const Runs& tokens, Array<T>& index_w) const {
  const std::int64_t in_width = sizes_["E"], heads = sizes_["A"];
  for_each_row(run, static_cast<std::int64_t>(tokens.size()), [&](std::int64_t i) {
    const auto [first, last] = tokens[place(i)];
    const std::span<T> w = rows_of(index_w, first, last - first, heads);
    if (in_.given.index_w.given()) {
      fetch_rows<T>(in_.given.index_w, first, last - first, w);
      return;
    }
    Buffer<T> x(place((last - first) * in_width));
    fetch_rows<T>(in_.x, first, last - first, x);
    to_w_->apply(last - first, x, w);
  });
}

template <class T> void Tokens<T>::pull_back(const Run& run, const Array<T>& dq, const Array<T>& dk,
                                             const Array<T>& dw, Gradients<T>& grad) const {
  const std::int64_t in_width = sizes_["E"], rank = sizes_["Rq"], heads = sizes_["A"],
                     width = sizes_["e"];
  grad.x = Array<T>(in_.x.shape);
  grad.q_latent = Array<T>(in_.q_latent.shape);
  WeightSum<T> wq_b(in_.wq_b, grad.wq_b, rows()), wk(in_.wk, grad.wk, rows()),
      weights_proj(in_.weights_proj, grad.weights_proj, rows()),
      norm_weight(in_.k_norm_weight, grad.k_norm_weight, rows()),
      norm_bias(in_.k_norm_bias, grad.k_norm_bias, rows());
  Buffer<Exact<T>> weight(place(width));
  fetch<Exact<T>>(in_.k_norm_weight, {}, weight);
  for_each_shard(run, rows(), [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    in_chunks(end - begin, rows_of_a_block, [&](std::int64_t from, std::int64_t to) {
      const std::int64_t first = begin + from, count = to - from;
      Buffer<T> x(place(count * in_width));
      fetch_rows<T>(in_.x, first, count, x);
      const std::span<T> dx = rows_of(grad.x, first, count, in_width);
      if (!in_.given.index_q.given()) {
        Buffer<T> latent(place(count * rank));
        fetch_rows<T>(in_.q_latent, first, count, latent);
        const std::span<const T> given = rows_of(dq, first, count, heads * width);
        Buffer<T> dproduct(given.begin(), given.end());
        for (std::int64_t row = 0; row < count; ++row) {
          const Turn turn = turn_of(first + row);
          for (std::int64_t a = 0; a < heads; ++a) {
            rotation_->pull_back(turn, std::span<T>(dproduct).subspan(
                                           place((row * heads + a) * width), place(width)));
          }
        }
        to_q_->pull_back_input(count, dproduct, rows_of(grad.q_latent, first, count, rank));
        to_q_->pull_back_weight(count, latent, dproduct, wq_b.at(shard));
      }
      if (!in_.given.index_k.given()) {
        Buffer<T> product(place(count * width)), dproduct(place(count * width));
        to_k_->apply(count, x, product);
        for (std::int64_t row = 0; row < count; ++row) {
          const std::span<const T> key =
              std::span<const T>(product).subspan(place(row * width), place(width));
          const std::span<const T> given = rows_of(dk, first + row, 1, width);
          if (std::all_of(given.begin(), given.end(), [](const T& d) { return is_zero(d); }))
            continue;
          Buffer<T> dkey(given.begin(), given.end());
          rotation_->pull_back(turn_of(first + row), dkey);
          const LayerMoments<T> moments(key, eps_, [&] { return place_of(first + row); });
          moments.pull_back(key, weight, dkey,
                            std::span<T>(dproduct).subspan(place(row * width), place(width)),
                            norm_weight.values(shard), norm_bias.values(shard));
        }
        to_k_->pull_back_input(count, dproduct, dx);
        to_k_->pull_back_weight(count, x, dproduct, wk.at(shard));
      }
      if (!in_.given.index_w.given()) {
        to_w_->pull_back_input(count, rows_of(dw, first, count, heads), dx);
        to_w_->pull_back_weight(count, x, rows_of(dw, first, count, heads), weights_proj.at(shard));
      }
    });
  });
  for (WeightSum<T>* sum : {&wq_b, &wk, &weights_proj, &norm_weight, &norm_bias}) sum->fold();
}

#define INSTANTIATE(T) template class Tokens<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::dsa_indexer
