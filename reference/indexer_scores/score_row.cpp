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
  Heads heads{Operands<T>(), Buffer<Exact<T>>(count)};
  heads.q.resize(count * width);
  for (std::size_t a = 0; a < count; ++a) {
    heads.q.fetch(*tensors_.q, {b_, t_, first + static_cast<std::int64_t>(a)}, a * width, width);
  }
  fetch<T>(*tensors_.w, {b_, t_}, first, heads.w);
  return heads;
}

template <class T>
void ScoreRow<T>::scores(std::span<const std::int64_t> keys, std::span<T> z) const {
  for (T& value : z) value = T(0);
  const auto width = static_cast<std::size_t>(width_);
  Operands<T> k;
  k.resize(width);
  in_chunks(heads_, chunk_, [&](std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::size_t>(last - first);
    const Heads heads = fetch_heads(first, last);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      k.fetch(*tensors_.k, {b_, keys[j]}, 0, width);
      ++this_work().rows_fetched;
      T partial(0);
      for (std::size_t a = 0; a < count; ++a) {
        const T x = dot(heads.q.row(a * width, width), k.row(0, width));
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
  Operands<T> k;
  k.resize(width);
  in_chunks(heads_, chunk_, [&](std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::size_t>(last - first);
    const Heads heads = fetch_heads(first, last);
    Buffer<T> factors(count);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      k.fetch(*tensors_.k, {b_, keys[j]}, 0, width);
      ++this_work().rows_fetched;
      const T d = scale_ * dz[j];
      for (std::size_t a = 0; a < count; ++a) {
        const std::size_t head = static_cast<std::size_t>(first) + a;
        const T x = dot(heads.q.row(a * width, width), k.row(0, width));
        const T slope = tensors_.relu ? slope_above(x, T(0)) : T(1);  // the derivative at 0 is 0
        factors[a] = T(0);
        if (is_zero(slope)) continue;
        factors[a] = heads.w[a] * slope;
        dw[head] += d * (tensors_.relu ? relu(x) : x);
        add_scaled(dq.subspan(head * width, width), T(d * factors[a]), k.row(0, width));
      }
      add_combined(dk.row({b_, keys[j]}, width_), d, std::span<const T>(factors),
                   heads.q.row(0, count * width));
    }
    this_work().score_evaluations += static_cast<std::int64_t>(keys.size()) * (last - first);
  });
}

#define INSTANTIATE(T) template class ScoreRow<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline
