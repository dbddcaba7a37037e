#include "device/indexer_scores/launch.hpp"

#include "device/indexer_scores/naive.cuh"

namespace plumbline::device::PLUMBLINE_SIDE {
namespace {

bool valid(Stream& stream, const IndexerScores& p) {
  if (p.batch < 0 || p.rows < 0 || p.keys < 0 || p.heads < 0 || p.width < 0)
    stream.fail("indexer_scores: a size below 0");
  else if (!p.q || !p.k || !p.w)
    stream.fail("indexer_scores: no q, k or w");
  return !stream.failed();
}

template <class T> ScoreTensors<T> tensors_of(const IndexerScores& p) {
  return {View<const T, 4>(static_cast<const T*>(p.q), {p.batch, p.rows, p.heads, p.width}),
          View<const T, 3>(static_cast<const T*>(p.k), {p.batch, p.keys, p.width}),
          View<const T, 3>(static_cast<const T*>(p.w), {p.batch, p.rows, p.heads}), p.scale,
          p.relu};
}

template <class T> void forward(Stream& stream, const IndexerScores& p) {
  launch<Scores<T>>(stream, {tiles(p.rows, tile_rows), tiles(p.keys, tile_columns), p.batch},
                    {tensors_of<T>(p), View<float, 3>(p.scores, {p.batch, p.rows, p.keys})});
}

template <class T> void backward(Stream& stream, const IndexerScoresBackward& args) {
  const IndexerScores& p = args.of;
  const ScoreGradientArgs<T> all{
      tensors_of<T>(p),
      View<const T, 3>(static_cast<const T*>(args.dscores), {p.batch, p.rows, p.keys}),
      View<float, 4>(args.dq, {p.batch, p.rows, p.heads, p.width}),
      View<float, 3>(args.dw, {p.batch, p.rows, p.heads}),
      View<float, 3>(args.dk, {p.batch, p.keys, p.width})};
  const std::int64_t channels = tiles(p.width, tile_columns);
  launch<QueryGradient<T>>(stream, {tiles(p.rows, tile_rows), p.heads * channels, p.batch}, all);
  launch<KeyGradient<T>>(stream, {tiles(p.keys, tile_rows), channels, p.batch}, all);
}

}  // namespace

void indexer_scores(Stream& stream, const IndexerScores& args) {
  if (!valid(stream, args)) return;
  if (!args.scores) return stream.fail("indexer_scores: no scores");
  args.type == Type::bf16 ? forward<bf16>(stream, args) : forward<float>(stream, args);
}
void indexer_scores_backward(Stream& stream, const IndexerScoresBackward& args) {
  if (!valid(stream, args.of)) return;
  if (!args.dscores || !args.dq || !args.dk || !args.dw)
    return stream.fail("indexer_scores: no dscores, dq, dk or dw");
  args.of.type == Type::bf16 ? backward<bf16>(stream, args) : backward<float>(stream, args);
}

}  // namespace plumbline::device::PLUMBLINE_SIDE
