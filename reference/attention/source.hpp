// reference/attention/source.hpp
//
// Where an attention's keys and values lie. A key row is some stretches of channels of stored
// tensors side by side, a value row likewise; they may share channels (one latent that is both),
// and every attention here is such a list:
//   keys with values of their own       key {key}               value {value}
//   values that are part of the keys    key {key}               value {the first channels of key}
//   latent attention, absorbed          key {latent, 1, k_pe}   value {latent, 1}  (1: for the bias)
//   window and compressed blocks        two sources, each key {x}, value {x}
#pragma once
#include <vector>

#include "reference/numeric/primitives.hpp"
#include "reference/numeric/work.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::attention {

// Channels [first, first + width) of a tensor [B, K, all], which every head reads, or [B, K, G,
// all], of which head h of H reads group floor(h·G/H). Without a tensor it is the constant 1.
struct Part {
  StoredTensor tensor;
  std::int64_t first = 0, width = 1;
  int gradient = -1;  // number of the array that takes its gradient; −1: none

  bool grouped() const { return tensor.shape.size() == 4; }
  std::int64_t group(std::int64_t head, std::int64_t heads) const {
    return grouped() ? head * tensor.size(2) / heads : 0;
  }
  // Where the stretch begins in an array of the tensor's shape.
  std::size_t offset(std::int64_t b, std::int64_t key, std::int64_t head,
                     std::int64_t heads) const {
    const std::int64_t groups = grouped() ? tensor.size(2) : 1;
    const std::int64_t row = (b * tensor.size(1) + key) * groups + group(head, heads);
    return static_cast<std::size_t>(row * tensor.shape.back() + first);
  }
};

struct Source {
  std::vector<Part> key, value;
};
struct RowKey {
  std::size_t source;
  std::int64_t key;
};

// Key or value rows, converted one at a time; a stretch that several heads share is converted once
// for them.
template <class T> class RowReader {
 public:
  explicit RowReader(std::int64_t width) : row_(static_cast<std::size_t>(width)) {}

  void start(const std::vector<Part>& parts, std::int64_t b, std::int64_t key) {
    parts_ = &parts;
    b_ = b, key_ = key;
    group_.assign(parts.size(), -1);
  }
  std::span<const T> row(std::int64_t head, std::int64_t heads) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < parts_->size(); ++i) {
      const Part& part = (*parts_)[i];
      const std::span<T> to = std::span<T>(row_).subspan(at, static_cast<std::size_t>(part.width));
      at += to.size();
      const std::int64_t group = part.group(head, heads);
      if (group == group_[i]) continue;
      group_[i] = group;
      if (!part.tensor.given()) {
        for (T& one : to) one = T(1);
        continue;
      }
      if (part.grouped()) {
        fetch<T>(part.tensor, {b_, key_, group}, part.first, to);
      } else {
        fetch<T>(part.tensor, {b_, key_}, part.first, to);
      }
      ++this_work().rows_fetched;
    }
    return row_;
  }

 private:
  const std::vector<Part>* parts_ = nullptr;
  std::int64_t b_ = 0, key_ = 0;
  std::vector<std::int64_t> group_;
  Buffer<T> row_;
};

}  // namespace plumbline::attention
