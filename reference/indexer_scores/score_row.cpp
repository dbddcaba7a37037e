#include "reference/indexer_scores/score_row.hpp"

#include "reference/numeric/instantiate.hpp"
#include "reference/operation/run.hpp"

namespace plumbline {

template <class T> ScoreRow<T>::ScoreRow(const IndexTensors& tensors, std::int64_t b,
                                         std::int64_t t, std::int64_t head_chunk)
    : tensors_(tensors),
      b_(b),
      t_(t),
      heads_(tensors.q->size(2)),
      width_(tensors.q->size(3)),
      chunk_(head_chunk),
      scale_(score_scale<T>(tensors.scale, heads_, width_)) {}

// The queries and weights of a chunk of heads.
template <class T>
typename ScoreRow<T>::Heads ScoreRow<T>::fetch_heads(std::int64_t first, std::int64_t last) const {
  const auto width = static_cast<std::size_t>(width_),
             count = static_cast<std::size_t>(last - first);
  Heads heads{Buffer<Exact<T>>(count * width), Buffer<Exact<T>>(count)};
  for (std::size_t a = 0; a < count; ++a) {
    fetch<T>(*tensors_.q, {b_, t_, first + static_cast<std::int64_t>(a)},
             std::span<T>(heads.q).subspan(a * width, width));
  }
  fetch<T>(*tensors_.w, {b_, t_}, first, heads.w);
  return heads;
}

template <class T>
void ScoreRow<T>::scores(std::span<const std::int64_t> keys, std::span<T> z) const {
  for (T& value : z) value = T(0);
  const auto width = static_cast<std::size_t>(width_);
  Buffer<Exact<T>> k(width);
  in_chunks(heads_, chunk_, [&](std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::size_t>(last - first);
    const Heads heads = fetch_heads(first, last);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      fetch<T>(*tensors_.k, {b_, keys[j]}, k);
      ++this_work().rows_fetched;
      T partial(0);
      for (std::size_t a = 0; a < count; ++a) {
        const T x = dot<T>(heads.query(a, width), k);
        partial += heads.w[a] * (tensors_.relu ? relu(x) : x);
      }
      z[j] += partial;
    }
    this_work().score_evaluations += static_cast<std::int64_t>(keys.size()) * (last - first);
  });
  for (T& value : z) value = round_at(Point::index_scores, T(scale_ * value));
}

template <class T> void ScoreRow<T>::pull_back(std::span<const std::int64_t> keys,
                                               std::span<const T> dz, std::span<T> dq,
                                               std::span<T> dw, Array<T>& dk) const {
  const auto width = static_cast<std::size_t>(width_);
  Buffer<Exact<T>> k(width);
  in_chunks(heads_, chunk_, [&](std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::size_t>(last - first);
    const Heads heads = fetch_heads(first, last);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      fetch<T>(*tensors_.k, {b_, keys[j]}, k);
      ++this_work().rows_fetched;
      const std::span<T> dkey = dk.row({b_, keys[j]}, width_);
      const T d = scale_ * dz[j];
      for (std::size_t a = 0; a < count; ++a) {
        const std::span<const Exact<T>> query = heads.query(a, width);
        const std::size_t head = static_cast<std::size_t>(first) + a;
        const T x = dot<T>(query, k);
        const T slope = tensors_.relu ? slope_above(x, T(0)) : T(1);  // the derivative at 0 is 0
        if (is_zero(slope)) continue;
        dw[head] += d * (tensors_.relu ? relu(x) : x);
        const T dx = d * heads.w[a] * slope;
        for (std::size_t i = 0; i < width; ++i) {
          dq[head * width + i] += dx * k[i];
          dkey[i] += dx * query[i];
        }
      }
    }
    this_work().score_evaluations += static_cast<std::int64_t>(keys.size()) * (last - first);
  });
}

#define INSTANTIATE(T) template class ScoreRow<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline
