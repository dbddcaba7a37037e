// reference/operation/shards.hpp
//
// Gradients that many rows add to (keys, weights); an array that is not wanted has no parts. Each shard of rows has its own sum; fold() adds them in order.
#pragma once
#include <vector>

#include "reference/operation/run.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

template <class T> class Shards {
 public:
  Shards(Array<T>& total, std::int64_t rows) : total_(total) {
    for (std::int64_t i = 1; total.given() && i < shards_of(rows); ++i)
      parts_.emplace_back(total.shape);
  }
  Array<T>& operator[](std::int64_t shard) {
    return shard == 0 ? total_ : parts_[static_cast<std::size_t>(shard - 1)];
  }
  void fold() {
    for (Array<T>& part : parts_) {
      for (std::size_t i = 0; i < part.values.size(); ++i) total_.values[i] += part.values[i];
    }
    parts_.clear();
  }

 private:
  Array<T>& total_;
  std::vector<Array<T>> parts_;
};

}  // namespace plumbline
