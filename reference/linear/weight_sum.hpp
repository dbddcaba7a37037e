// reference/linear/weight_sum.hpp
//
// The gradient of a weight that may be absent: summed over rows in shards, in a fixed order; absent
// weights have none, and no memory.
#pragma once
#include <optional>
#include <span>

#include "reference/operation/shards.hpp"

namespace plumbline {

template <class T> class WeightSum {
 public:
  WeightSum(const StoredTensor& weight, Array<T>& grad, std::int64_t rows) {
    if (!weight.given()) return;
    grad = Array<T>(weight.shape);
    shards_.emplace(grad, rows);
  }
  Array<T>* at(std::int64_t shard) { return shards_ ? &(*shards_)[shard] : nullptr; }
  std::span<T> values(std::int64_t shard) {
    return shards_ ? std::span<T>((*shards_)[shard].values) : std::span<T>();
  }
  void fold() {
    if (shards_) shards_->fold();
  }

 private:
  std::optional<Shards<T>> shards_;
};

}  // namespace plumbline
