#include <algorithm>
#include <numeric>
#include <vector>

#include "reference/indexer_scores/indexer_scores.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::indexer_scores {

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  Sizes sizes;
  Inputs named = in;
  sizes.unify_all(named);
  const std::int64_t rows = sizes["T"], keys = sizes["K"];
  const IndexTensors tensors{&in.q, &in.k, &in.w, options.scale, options.relu};
  Outputs<T> out;
  out.scores = Array<T>(sizes.shape("B T K"));
  for_each_row(run, sizes["B"] * rows, [&](std::int64_t row) {
    const std::int64_t b = row / rows, t = row % rows;
    this_decisions().at_row(b, t);
    const ScoreRow<T> scores(tensors, b, t, run.schedule.head_chunk);
    std::vector<std::int64_t> list;
    in_chunks(keys, run.schedule.key_block, [&](std::int64_t first, std::int64_t last) {
      list.resize(static_cast<std::size_t>(last - first));
      std::iota(list.begin(), list.end(), first);
      Buffer<T> z(list.size());
      scores.scores(list, z);
      std::copy(z.begin(), z.end(), out.scores.row({b, t}, keys).begin() + first);
    });
  });
  return out;
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer_scores
