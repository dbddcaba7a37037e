#include "reference/indexer_loss/rows.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/operation/shards.hpp"

namespace plumbline::indexer_loss {
namespace {

// cot.loss · coefficient / count; a missing cot.loss is 0, with no cotangent at all 1.
template <class T>
T loss_cotangent(const Cotangents& cotangents, const Options& options, const T& divisor) {
  if (!(divisor > T(0))) return T(0);
  T cotangent(0);
  if (cotangents.loss.given()) {
    cotangent = fetch_one<T>(cotangents.loss, {});
  } else if (!cotangents.row_loss.given()) {
    cotangent = T(1);
  }
  return cotangent * constant<T>(options.coefficient) / divisor;
}

}  // namespace

template <class T> Gradients<T> backward(const Tensors& in, const Options& options, const Run& run,
                                         Sizes sizes, const Cotangents& cotangents) {
  const Rows<T> all(in, options, sizes);
  if (cotangents.loss.given()) sizes.unify(cotangents.loss, "");
  if (cotangents.row_loss.given()) sizes.unify(cotangents.row_loss, "B T");
  const T through_loss = loss_cotangent(cotangents, options, all.divisor(options));
  const IndexTensors tensors{&in.index_q, &in.index_k, &in.index_w, options.score_scale,
                             options.relu};
  const bool scores = in.scores.given();

  Gradients<T> grad;
  if (scores) {
    grad.scores = Array<T>(in.scores.shape);
  } else {
    grad.index_q = Array<T>(in.index_q.shape);
    grad.index_k = Array<T>(in.index_k.shape);
    grad.index_w = Array<T>(in.index_w.shape);
  }
  Shards<T> dk(grad.index_k, all.batch * all.rows);
  for_each_shard(
      run, all.batch * all.rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t b = i / all.rows, t = i % all.rows;
          if (!all.visibility.real(b, t)) continue;
          LossRow<T> row(in, options, run, all.visibility, all.sink, b, t);
          T cotangent = through_loss;
          if (cotangents.row_loss.given()) cotangent += fetch_one<T>(cotangents.row_loss, {b, t});
          row.gradient(cotangent, [&](const KeySet::Block& block, std::span<const T> dz) {
            if (scores) {
              for (std::size_t j = 0; j < dz.size(); ++j)
                grad.scores({b, t, block.places[j]}) = dz[j];
              return;
            }
            const std::int64_t heads = in.index_q.size(2), width = in.index_q.size(3);
            ScoreRow<T>(tensors, b, t, run.schedule.head_chunk)
                .pull_back(block.keys, dz, grad.index_q.row({b, t}, heads * width),
                           grad.index_w.row({b, t}, heads), dk[shard]);
          });
        }
      });
  dk.fold();
  return grad;
}

#define INSTANTIATE(T)                                                                 \
  template Gradients<T> backward<T>(const Tensors&, const Options&, const Run&, Sizes, \
                                    const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer_loss
