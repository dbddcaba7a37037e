// reference/indexer/selection_rows.hpp
//
// What the indexers of both models do with index_q, index_k and index_w: scores over the keys each row sees, and the
// k best of them; and the way back from a cotangent of the scores. Row t uses index_q and index_w of its token, or (of_rows, select_rows alone) its own.
// Guarantees: hidden scores are −inf and send nothing back; O(row) memory unless the scores are asked for.
#pragma once
#include <optional>

#include "reference/indexer_scores/score_row.hpp"
#include "reference/mask/mask.hpp"
#include "reference/operation/run.hpp"
#include "reference/topk/topk.hpp"

namespace plumbline::indexer {

struct Choice {  // options that both indexers have
  std::optional<std::int64_t> k;
  Tie tie = Tie::lowest_index;
};

// What a case supplies in place of a stage's result.
struct Given {
  StoredTensor index_q, index_k, index_w, scores, indices, selected;
};

template <class T> struct Selected {
  Array<T> scores;               // [B, T, K], if wanted
  Array<std::int32_t> indices;   // [B, T, k]
  Array<std::uint8_t> selected;  // [B, T, K], if wanted
};

template <class T> Selected<T> select_rows(const IndexTensors& tensors,
                                           const Visibility& visibility, const Choice& choice,
                                           const Given& given, const Run& run, bool want_scores,
                                           bool want_selected);

// Adds to dq [B, S, A, e], dk [B, K, e], dw [B, S, A] what a cotangent of the scores sends back.
template <class T> void pull_back_scores(const IndexTensors& tensors, const Visibility& visibility,
                                         const StoredTensor& dscores, const Run& run, Array<T>& dq,
                                         Array<T>& dk, Array<T>& dw);

}  // namespace plumbline::indexer
