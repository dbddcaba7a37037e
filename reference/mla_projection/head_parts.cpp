#include "reference/mla_projection/head_parts.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline {

template <class T> HeadParts<T>::HeadParts(const StoredTensor& weight, const StoredTensor& bias,
                                           std::int64_t first, bool sliced)
    : first_(static_cast<std::size_t>(first)),
      second_(static_cast<std::size_t>(weight.size(2) - first)) {
  if (sliced) {
    part_a_.emplace(weight, bias, columns_of(weight, Slice{0, first}, "schedule.sliced"));
    part_b_.emplace(weight, bias,
                    columns_of(weight, Slice{first, weight.size(2)}, "schedule.sliced"));
  } else {
    whole_.emplace(weight, bias, columns_of(weight, std::nullopt, ""));
  }
}

template <class T> void HeadParts<T>::apply(std::int64_t rows, std::span<const T> x, std::span<T> a,
                                            std::span<T> b) const {
  if (!whole_) {
    part_a_->apply(rows, x, a);
    part_b_->apply(rows, x, b);
    return;
  }
  Buffer<T> product(a.size() + b.size());
  whole_->apply(rows, x, product);
  const T* from = product.data();
  for (std::size_t head = 0; head * first_ < a.size(); ++head, from += first_ + second_) {
    std::copy(from, from + first_, a.begin() + static_cast<std::ptrdiff_t>(head * first_));
    std::copy(from + first_, from + first_ + second_,
              b.begin() + static_cast<std::ptrdiff_t>(head * second_));
  }
}

template <class T> void HeadParts<T>::pull_back(const Contraction<T>& product, std::int64_t rows,
                                                std::span<const T> x, std::span<const T> dy,
                                                std::span<T> dx, Array<T>* dweight,
                                                Array<T>* dbias) const {
  product.pull_back_input(rows, dy, dx);
  product.pull_back_weight(rows, x, dy, dweight);
  product.pull_back_bias(rows, dy, dbias);
}

template <class T> void HeadParts<T>::pull_back(std::int64_t rows, std::span<const T> x,
                                                std::span<const T> da, std::span<const T> db,
                                                std::span<T> dx, Array<T>* dweight,
                                                Array<T>* dbias) const {
  if (!whole_) {
    pull_back(*part_a_, rows, x, da, dx, dweight, dbias);
    pull_back(*part_b_, rows, x, db, dx, dweight, dbias);
    return;
  }
  Buffer<T> dproduct(da.size() + db.size());
  auto to = dproduct.begin();
  for (std::size_t head = 0; head * first_ < da.size(); ++head) {
    to = std::copy_n(da.begin() + static_cast<std::ptrdiff_t>(head * first_), first_, to);
    to = std::copy_n(db.begin() + static_cast<std::ptrdiff_t>(head * second_), second_, to);
  }
  pull_back(*whole_, rows, x, dproduct, dx, dweight, dbias);
}

#define INSTANTIATE(T) template class HeadParts<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline
