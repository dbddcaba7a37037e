// reference/indexer_scores/score_row.hpp
//
// One query row of the lightning indexer,
//     z[s] = c · Σ_a w[a] · relu(q[a]·k[s]),
// forward and pulled back, over any list of keys. Shared by indexer_scores, the indexers and their losses.
// Source: DeepSeek-V3.2 report, equation 1; DeepSeek-V4 report, equation 16.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "reference/numeric/primitives.hpp"
#include "reference/numeric/work.hpp"
#include "reference/tensor/operands.hpp"

namespace plumbline {

enum class ScoreScale { heads_and_dim, dim, none };
inline std::span<const std::string_view> names_of(ScoreScale) {
  static constexpr std::string_view names[] = {"heads_and_dim", "dim", "none"};
  return names;
}
// A^−1/2·e^−1/2, e^−1/2 or 1.
template <class T> T score_scale(ScoreScale scale, std::int64_t heads, std::int64_t width) {
  if (scale == ScoreScale::none) return T(1);
  const double product = static_cast<double>(scale == ScoreScale::dim ? width : heads * width);
  return rsqrt(constant<T>(product));
}

struct IndexTensors {
  const StoredTensor* q = nullptr;  // [B, T, A, e]
  const StoredTensor* k = nullptr;  // [B, K, e]
  const StoredTensor* w = nullptr;  // [B, T, A]
  ScoreScale scale = ScoreScale::heads_and_dim;
  bool relu = true;
  bool of_rows = false;  // of an indexer: q and w are of its query rows, not of all tokens
};

template <class T> class ScoreRow {
 public:
  ScoreRow(const IndexTensors& tensors, std::int64_t b, std::int64_t t, std::int64_t head_chunk);

  void scores(std::span<const std::int64_t> keys, std::span<T> z) const;
  // Adds what dz (over these keys) sends to the row's q and w, and to the keys of batch b in dk [B, K, e].
  void pull_back(std::span<const std::int64_t> keys, std::span<const T> dz, std::span<T> dq,
                 std::span<T> dw, Array<T>& dk) const;

 private:
  struct Heads {
    Operands<T> q;
    Buffer<Exact<T>> w;
  };
  Heads fetch_heads(std::int64_t first, std::int64_t last) const;

  const IndexTensors& tensors_;
  std::int64_t b_, t_, heads_, width_, chunk_;
  T scale_;
};

}  // namespace plumbline
