#include "reference/indexer/selection_rows.hpp"

#include "reference/mask/index_slots.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/operation/shards.hpp"

namespace plumbline::indexer {

template <class T> Selected<T> select_rows(const IndexTensors& tensors,
                                           const Visibility& visibility, const Choice& choice,
                                           const Given& given, const Run& run, bool want_scores,
                                           bool want_selected) {
  const std::int64_t batch = visibility.batch(), rows = visibility.rows(), keys = visibility.keys();
  const std::int64_t k = checked_k(choice.k);
  Selected<T> out;
  out.indices =
      Array<std::int32_t>({batch, rows, given.indices.given() ? given.indices.size(2) : k}, -1);
  if (want_scores) out.scores = Array<T>({batch, rows, keys}, -infinity<T>());
  if (want_selected) out.selected = Array<std::uint8_t>({batch, rows, keys});
  for_each_row(run, batch * rows, [&](std::int64_t i) {
    const std::int64_t b = i / rows, t = i % rows;
    this_decisions().at_row(b, t);
    const std::vector<std::int64_t> seen = visibility.keys(b, t);
    Buffer<T> scores(seen.size());
    if (given.scores.given()) {
      for (std::size_t j = 0; j < seen.size(); ++j)
        scores[j] = element<T>(given.scores, {b, t, seen[j]});
    } else if (!seen.empty() && (want_scores || !given.indices.given())) {
      ScoreRow<T>(tensors, b, tensors.of_rows ? t : visibility.row_token(t),
                  run.schedule.head_chunk)
          .scores(seen, scores);
    }
    for (std::size_t j = 0; want_scores && j < seen.size(); ++j)
      out.scores({b, t, seen[j]}) = leave(scores[j]);
    if (!visibility.real(b, t)) return;
    std::vector<std::int64_t> selected;
    if (given.indices.given()) {
      const std::vector<IndexSlot> named = used_slots(given.indices, b, t, keys);
      refuse_duplicates(given.indices, b, t, named);
      for (const IndexSlot& each : named) {
        out.indices({b, t, each.slot}) = static_cast<std::int32_t>(each.key);
        selected.push_back(each.key);
      }
    } else {
      const Selection best = select_best<T>(seen, scores, k, choice.tie);
      for (std::size_t j = 0; j < best.order.size(); ++j) {
        out.indices({b, t, static_cast<std::int64_t>(j)}) =
            static_cast<std::int32_t>(best.order[j]);
      }
      selected = best.selected;
    }
    if (!want_selected) return;
    for (const std::int64_t key : selected) out.selected({b, t, key}) = 1;
    for (std::int64_t key = 0; given.selected.given() && key < keys; ++key) {
      out.selected({b, t, key}) = boolean_at(given.selected, {b, t, key}) ? 1 : 0;
    }
  });
  return out;
}

template <class T> void pull_back_scores(const IndexTensors& tensors, const Visibility& visibility,
                                         const StoredTensor& dscores, const Run& run, Array<T>& dq,
                                         Array<T>& dk, Array<T>& dw) {
  const std::int64_t batch = visibility.batch(), rows = visibility.rows();
  const std::int64_t heads = tensors.q->size(2), width = tensors.q->size(3);
  Shards<T> keys(dk, batch * rows);
  for_each_shard(run, batch * rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t b = i / rows, t = i % rows, token = visibility.row_token(t);
      const std::vector<std::int64_t> seen = visibility.keys(b, t);
      Buffer<T> dz(seen.size());
      for (std::size_t j = 0; j < seen.size(); ++j) dz[j] = fetch_one<T>(dscores, {b, t, seen[j]});
      ScoreRow<T>(tensors, b, token, run.schedule.head_chunk)
          .pull_back(seen, dz, dq.row({b, token}, heads * width), dw.row({b, token}, heads),
                     keys[shard]);
    }
  });
  keys.fold();
}

#define INSTANTIATE(T)                                                                           \
  template Selected<T> select_rows<T>(const IndexTensors&, const Visibility&, const Choice&,     \
                                      const Given&, const Run&, bool, bool);                     \
  template void pull_back_scores<T>(const IndexTensors&, const Visibility&, const StoredTensor&, \
                                    const Run&, Array<T>&, Array<T>&, Array<T>&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer
