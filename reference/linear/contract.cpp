#include "reference/linear/contract.hpp"

#include "reference/error.hpp"
#include "reference/linear/blocked.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/numeric/operand.hpp"

namespace plumbline {
namespace {

std::string text_of(const Slice& slice) {
  return "[" + std::to_string(slice[0]) + ", " + std::to_string(slice[1]) + ")";
}
std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

void refuse_quantised(const StoredTensor& weight, const std::string& where) {
  if (weight.dtype != Dtype::f8_e4m3 && weight.dtype != Dtype::f8_e5m2) return;
  throw Error(where,
              "a slice of " + weight.name + ", which is quantised (" +
                  std::string(name_of(weight.dtype)) + ")",
              "weights that are not: the codes of a slice do not stand alone, their scales belong "
              "to tiles of the whole");
}

Slice columns_of(const StoredTensor& weight, const std::optional<Slice>& slice,
                 const std::string& where) {
  const std::int64_t width = weight.shape.back();
  if (!slice) return {0, width};
  refuse_quantised(weight, where);
  const auto [begin, end] = *slice;
  if (begin < 0 || begin >= end || end > width) {
    throw Error(where, text_of(*slice),
                "0 <= begin < end <= " + std::to_string(width) + ", the width of " + weight.name);
  }
  return *slice;
}

void for_each_block(const Run& run, std::int64_t rows,
                    const std::function<void(std::int64_t, std::int64_t)>& f) {
  for_each_row(run, (rows + rows_of_a_block - 1) / rows_of_a_block, [&](std::int64_t block) {
    f(block * rows_of_a_block, std::min((block + 1) * rows_of_a_block, rows));
  });
}

template <class T>
Contraction<T>::Contraction(const StoredTensor& weight, const StoredTensor& bias, Slice columns)
    : weight_(&weight),
      bias_(&bias),
      columns_(columns),
      groups_(weight.shape.size() == 2 ? 1 : weight.size(1)),
      width_(weight.shape.back()) {}

template <class T> void Contraction<T>::fetch_row(std::int64_t i, std::span<Exact<T>> row) const {
  const std::size_t width = place(columns_[1] - columns_[0]);
  for (std::int64_t g = 0; g < groups_; ++g) {
    const std::int64_t lead[] = {i, g};
    Fetch<Exact<T>>::row(*weight_, Index(lead, weight_->shape.size() - 1), columns_[0],
                         row.subspan(place(g) * width, width));
  }
  ++this_work().rows_fetched;
}

template <class T> void Contraction<T>::fetch_bias(std::span<Exact<T>> row) const {
  const std::size_t width = place(columns_[1] - columns_[0]);
  for (std::int64_t g = 0; g < groups_; ++g) {
    Fetch<Exact<T>>::row(*bias_, Index(&g, bias_->shape.size() - 1), columns_[0],
                         row.subspan(place(g) * width, width));
  }
}

// Longhand: for every i the row of W times x[n, i].
template <class T>
void Contraction<T>::multiply(std::int64_t rows, std::span<const T> x, std::span<T> y) const {
  const std::size_t in = place(inputs()), out = place(outputs());
  Buffer<Exact<T>> w(out);
  for (std::size_t i = 0; i < in; ++i) {
    fetch_row(static_cast<std::int64_t>(i), w);
    for (std::size_t n = 0; n < place(rows); ++n) {
      add_scaled(y.subspan(n * out, out), x[n * in + i], std::span<const T>(w));
    }
  }
}

// The same sums in the same order, panels of columns at a time; a stretch of a row of W fills several.
template <>
void Contraction<f64>::multiply(std::int64_t rows, std::span<const f64> x, std::span<f64> y) const {
  const std::size_t in = place(inputs()), width = place(columns_[1] - columns_[0]),
                    out = place(outputs());
  const std::size_t panel_size = panel_depth * panel_columns,
                    sums_size = place(rows) * panel_columns;
  const std::size_t panels = std::min(most_panels, (width + panel_columns - 1) / panel_columns);
  Buffer<f64> panel(panels * panel_size), sums(panels * sums_size), row(panels * panel_columns);
  for (std::size_t g = 0; g < place(groups_); ++g) {
    for (std::size_t c = 0; c < width; c += panels * panel_columns) {
      const std::size_t columns = std::min(panels * panel_columns, width - c);
      std::fill(sums.begin(), sums.end(), f64(0));
      std::fill(row.begin(), row.end(), f64(0));
      for (std::size_t first = 0; first < in; first += panel_depth) {
        const std::size_t depth = std::min(panel_depth, in - first);
        for (std::size_t i = 0; i < depth; ++i) {
          const std::int64_t lead[] = {static_cast<std::int64_t>(first + i),
                                       static_cast<std::int64_t>(g)};
          Fetch<f64>::row(*weight_, Index(lead, weight_->shape.size() - 1),
                          columns_[0] + static_cast<std::int64_t>(c),
                          std::span<f64>(row).first(columns));
          for (std::size_t p = 0; p < panels; ++p) {
            std::copy_n(row.data() + p * panel_columns, panel_columns,
                        panel.data() + p * panel_size + i * panel_columns);
          }
        }
        for (std::size_t p = 0; p * panel_columns < columns; ++p) {
          add_product(place(rows), depth, x.data() + first, in, panel.data() + p * panel_size,
                      sums.data() + p * sums_size);
        }
      }
      for (std::size_t p = 0; p * panel_columns < columns; ++p) {
        const std::size_t taken = std::min(panel_columns, columns - p * panel_columns);
        for (std::size_t n = 0; n < place(rows); ++n) {
          std::copy_n(sums.data() + p * sums_size + n * panel_columns, taken,
                      y.data() + n * out + g * width + c + p * panel_columns);
        }
      }
    }
  }
  this_work().rows_fetched += inputs();
}

template <class T>
void Contraction<T>::apply(std::int64_t rows, std::span<const T> x, std::span<T> y) const {
  const std::size_t out = place(outputs());
  std::fill(y.begin(), y.end(), T(0));
  multiply(rows, x, y);
  if (bias_->given()) {
    Buffer<Exact<T>> w(out);
    fetch_bias(w);
    for (std::size_t n = 0; n < place(rows); ++n) {
      for (std::size_t c = 0; c < out; ++c) y[n * out + c] += w[c];
    }
  }
  for (T& value : y) value = round_at(Point::proj_out, value);
  this_work().evaluations += rows * outputs();
}

template <class T> void Contraction<T>::pull_back_input(std::int64_t rows, std::span<const T> dy,
                                                        std::span<T> dx) const {
  const std::size_t in = place(inputs()), out = place(outputs());
  Buffer<Exact<T>> w(out);
  for (std::size_t i = 0; i < in; ++i) {
    fetch_row(static_cast<std::int64_t>(i), w);
    for (std::size_t n = 0; n < place(rows); ++n)
      dx[n * in + i] += dot<T>(dy.subspan(n * out, out), w);
  }
}

template <class T> void Contraction<T>::pull_back_weight(std::int64_t rows, std::span<const T> x,
                                                         std::span<const T> dy,
                                                         Array<T>* dweight) const {
  if (dweight == nullptr) return;
  const std::size_t in = place(inputs()), out = place(outputs()),
                    width = place(columns_[1] - columns_[0]);
  for (std::size_t i = 0; i < in; ++i) {
    for (std::size_t n = 0; n < place(rows); ++n) {
      for (std::size_t g = 0; g < place(groups_); ++g) {
        const std::size_t at = (i * place(groups_) + g) * place(width_) + place(columns_[0]);
        add_scaled(std::span<T>(dweight->values).subspan(at, width), x[n * in + i],
                   dy.subspan(n * out + g * width, width));
      }
    }
  }
}

template <class T> void Contraction<T>::pull_back_bias(std::int64_t rows, std::span<const T> dy,
                                                       Array<T>* dbias) const {
  if (dbias == nullptr) return;
  const std::size_t out = place(outputs()), width = place(columns_[1] - columns_[0]);
  for (std::size_t n = 0; n < place(rows); ++n) {
    for (std::size_t g = 0; g < place(groups_); ++g) {
      const std::size_t at = g * place(width_) + place(columns_[0]);
      for (std::size_t o = 0; o < width; ++o) dbias->values[at + o] += dy[n * out + g * width + o];
    }
  }
}

#define INSTANTIATE(T) template class Contraction<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline
