// reference/indexer_loss/rows.hpp
//
// What forward and backward share before the first row: visibility, the sink, which rows count, the divisor.
#pragma once
#include <vector>

#include "reference/indexer_loss/row.hpp"

namespace plumbline::indexer_loss {

template <class T> struct Rows {
  Visibility visibility;
  std::vector<T> sink;
  std::int64_t batch, rows, real = 0, valid = 0;
  std::vector<std::uint8_t> sees;  // [B, T] real and V_t not empty

  Rows(const Tensors& tensors, const Options& options, Sizes& sizes);
  T divisor(const Options& options) const;  // 0: a mean over no rows
};

template <class T> Rows<T>::Rows(const Tensors& tensors, const Options& options, Sizes& sizes)
    : visibility(options.mask, tensors.mask, sizes, Blocks{options.m.value_or(0), options.grid},
                 options.tokens),
      batch(visibility.batch()),
      rows(visibility.rows()) {
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < rows; ++t) {
      bool any = false;
      if (visibility.real(b, t)) {
        ++real;
        for (std::int64_t key = 0, end = visibility.keys_end(t); key < end && !any; ++key) {
          any = visibility.visible(b, t, key);
        }
      }
      valid += any ? 1 : 0;
      sees.push_back(any ? 1 : 0);
    }
  }
  const bool used = options.teacher == Teacher::joint && !tensors.given_log_mass.given() &&
                    !tensors.given_head_sum.given() && tensors.query.given() && real > 0;
  if (used && tensors.sink.given()) {
    for (std::int64_t h = 0; h < tensors.sink.size(0); ++h) {
      const T value = element<T>(tensors.sink, {h});
      sink.push_back(is_nan(value) ? fetch_one<T>(tensors.sink, {h})
                                   : value);  // ±inf is a value, NaN an error
    }
  }
}

template <class T> T Rows<T>::divisor(const Options& options) const {
  const auto count = [](std::int64_t n) { return constant<T>(static_cast<double>(n)); };
  switch (options.reduction) {
    case Reduction::sum: return T(1);
    case Reduction::mean_all: return count(batch * rows);
    case Reduction::mean_valid: return count(valid);
    case Reduction::mean_real: return count(real);
  }
  return T(1);
}

}  // namespace plumbline::indexer_loss
