// device/indexer_scores/launch.hpp
//
// score[b,t,s] = scale·Σ_a w[b,t,a]·relu(q[b,t,a]·k[b,s]) and its gradients. Scores and gradients in
// f32: what compares them must see what was summed. No atomics: every sum has one order.
#pragma once
#include "device/plain.hpp"

namespace plumbline::device {

struct IndexerScores {
  Type type = Type::bf16;                                            // of q, k, w, dscores
  std::int64_t batch = 0, rows = 0, keys = 0, heads = 0, width = 0;  // B T K A e
  float scale = 1;
  bool relu = true;
  const void* q = nullptr;  // B T A e
  const void* k = nullptr;  // B K e
  const void* w = nullptr;  // B T A
  float* scores = nullptr;  // B T K
};
struct IndexerScoresBackward {
  IndexerScores of;               // its scores are not used
  const void* dscores = nullptr;  // B T K
  float* dq = nullptr;
  float* dk = nullptr;
  float* dw = nullptr;
};

PLUMBLINE_LAUNCHER(indexer_scores, IndexerScores)
PLUMBLINE_LAUNCHER(indexer_scores_backward, IndexerScoresBackward)

}  // namespace plumbline::device
