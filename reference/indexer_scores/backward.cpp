#include <numeric>
#include <vector>

#include "reference/indexer_scores/indexer_scores.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/operation/shards.hpp"

namespace plumbline::indexer_scores {

// dw[a] = Σ_s c·dz[s]·relu(x), dq[a] = Σ_s c·dz[s]·w[a]·[x > 0]·k[s], dk[s] = Σ_t,a c·dz[s]·w[a]·[x > 0]·q[a].
template <class T> Gradients<T> Op::backward(const Inputs& in, const Options& options,
                                             const Run& run, const Cotangents& cotangent) {
  Sizes sizes;
  Inputs named = in;
  sizes.unify_all(named);
  sizes.unify(cotangent.scores, "B T K");
  const std::int64_t rows = sizes["T"], keys = sizes["K"], heads = sizes["A"], width = sizes["e"];
  const IndexTensors tensors{&in.q, &in.k, &in.w, options.scale, options.relu};
  Gradients<T> grad;
  grad.q = Array<T>(in.q.shape);
  grad.w = Array<T>(in.w.shape);
  grad.k = Array<T>(in.k.shape);
  Shards<T> dk(grad.k, sizes["B"] * rows);
  for_each_shard(
      run, sizes["B"] * rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t b = row / rows, t = row % rows;
          const ScoreRow<T> scores(tensors, b, t, run.schedule.head_chunk);
          std::vector<std::int64_t> list;
          in_chunks(keys, run.schedule.key_block, [&](std::int64_t first, std::int64_t last) {
            list.resize(static_cast<std::size_t>(last - first));
            std::iota(list.begin(), list.end(), first);
            Buffer<T> dz(list.size());
            fetch<T>(cotangent.scores, {b, t}, first, dz);
            scores.pull_back(list, dz, grad.q.row({b, t}, heads * width), grad.w.row({b, t}, heads),
                             dk[shard]);
          });
        }
      });
  dk.fold();
  return grad;
}

#define INSTANTIATE(T)                                                             \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer_scores
