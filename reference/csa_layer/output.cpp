// The way out: inverse rotation, heads in groups through o_a, groups through o_b, and its transpose.
//     z[g] = Σ over the heads of group g of o_a[g]ᵀ (rope⁻¹ attention_output[h])      output = o_bᵀ z
#include "reference/csa_layer/layer.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Group by group, o_a and then o_b over a block of rows.
template <class T> class Groups {
 public:
  Groups(const StoredTensor& o_a, const StoredTensor& o_b)
      : groups_(o_a.size(0)), width_(o_a.size(1)), rank_(o_a.size(2)) {
    for (std::int64_t g = 0; g < groups_; ++g) weights_.push_back(at_first(o_a, g));
    for (const StoredTensor& weight : weights_) to_rank_.push_back(whole(weight));
    to_output_.emplace(whole(o_b));
  }
  Groups(const Groups&) = delete;

  // heads [rows, H·D] to z [rows, G·r]
  void inner(std::int64_t rows, std::span<const T> heads, std::span<T> z) const {
    Buffer<T> group(place(rows * width_)), part(place(rows * rank_));
    for (std::int64_t g = 0; g < groups_; ++g) {
      gather(rows, g, heads, group);
      to_rank_[place(g)].apply(rows, group, part);
      for (std::int64_t n = 0; n < rows; ++n) {
        std::copy_n(part.begin() + n * rank_, rank_, z.begin() + (n * groups_ + g) * rank_);
      }
    }
  }
  const Contraction<T>& outer() const { return *to_output_; }
  std::int64_t inner_width() const { return groups_ * rank_; }

  // dz back to dheads, which is overwritten, and to o_a.
  void pull_back_inner(std::int64_t rows, std::span<const T> heads, std::span<const T> dz,
                       std::span<T> dheads, Array<T>& do_a) const {
    Buffer<T> group(place(rows * width_)), part(place(rows * rank_));
    for (std::int64_t g = 0; g < groups_; ++g) {
      gather(rows, g, heads, group);
      for (std::int64_t n = 0; n < rows; ++n) {
        std::copy_n(dz.begin() + (n * groups_ + g) * rank_, rank_, part.begin() + n * rank_);
      }
      Buffer<T> back(place(rows * width_));
      to_rank_[place(g)].pull_back_input(rows, part, back);
      for (std::int64_t n = 0; n < rows; ++n) {
        std::copy_n(back.begin() + n * width_, width_, dheads.begin() + (n * groups_ + g) * width_);
      }
      for (std::int64_t n = 0; n < rows; ++n) {
        for (std::int64_t i = 0; i < width_; ++i) {
          const T& x = group[place(n * width_ + i)];
          const std::span<T> to = do_a.row({g, i}, rank_);
          for (std::int64_t o = 0; o < rank_; ++o) to[place(o)] += x * part[place(n * rank_ + o)];
        }
      }
    }
  }

 private:
  Contraction<T> whole(const StoredTensor& weight) const {
    return Contraction<T>(weight, none_, columns_of(weight, std::nullopt, ""));
  }
  void gather(std::int64_t rows, std::int64_t g, std::span<const T> heads,
              std::span<T> group) const {
    for (std::int64_t n = 0; n < rows; ++n) {
      std::copy_n(heads.begin() + (n * groups_ + g) * width_, width_, group.begin() + n * width_);
    }
  }

  std::int64_t groups_, width_, rank_;
  StoredTensor none_;
  std::vector<StoredTensor> weights_;
  std::vector<Contraction<T>> to_rank_;
  std::optional<Contraction<T>> to_output_;
};

// Attention outputs of a block of rows, turned back.
template <class T> Buffer<T> turned_back(const Array<T>& attention, TokenList rows,
                                         TokenList tokens, const Projection<T>& projection) {
  const std::int64_t width = attention.shape[2] * attention.shape[3];
  Buffer<T> heads(rows.size() * place(width));
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const std::span<T> row = std::span<T>(heads).subspan(n * place(width), place(width));
    std::copy_n(attention.values.begin() + rows[n] * width, width, row.begin());
    projection.turn_back(tokens[n], row);
  }
  return heads;
}

}  // namespace

template <class T> void Layer<T>::write_output() {
  out_.output = Array<T>(sizes_.shape("B T E"));
  const std::int64_t width = sizes_["E"];
  const Groups<T> groups(in_.o_a, in_.o_b);
  for_each_block(
      run_, static_cast<std::int64_t>(rows_.size()), [&](std::int64_t first, std::int64_t last) {
        const std::int64_t count = last - first;
        const TokenList rows = TokenList(rows_).subspan(place(first), place(count));
        const Buffer<T> heads =
            turned_back(out_.attention_output, rows,
                        TokenList(row_tokens_).subspan(place(first), place(count)), *projection_);
        Buffer<T> z(place(count * groups.inner_width())), y(place(count * width));
        groups.inner(count, heads, z);
        groups.outer().apply(count, z, y);
        for (std::int64_t n = 0; n < count; ++n) {
          std::copy_n(y.begin() + n * width, width,
                      out_.output.values.begin() + rows[place(n)] * width);
        }
      });
}

template <class T> void Layer<T>::pull_back_output(const StoredTensor& doutput,
                                                   Array<T>& dattention, Gradients<T>& grad) {
  dattention = Array<T>(sizes_.shape("B T H D"));
  const std::int64_t width = sizes_["E"], channels = sizes_["H"] * sizes_["D"];
  const Groups<T> groups(in_.o_a, in_.o_b);
  const std::vector<std::vector<std::int64_t>> blocks = blocks_of(rows_),
                                               tokens = blocks_of(row_tokens_);
  const auto count_of_blocks = static_cast<std::int64_t>(blocks.size());
  WeightSum<T> o_a(in_.o_a, grad.o_a, count_of_blocks), o_b(in_.o_b, grad.o_b, count_of_blocks);
  for_each_shard(
      run_, count_of_blocks, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::vector<std::int64_t>& rows = blocks[place(i)];
          const auto count = static_cast<std::int64_t>(rows.size());
          const Buffer<T> heads =
              turned_back<T>(out_.attention_output, rows, tokens[place(i)], *projection_);
          Buffer<T> z(place(count * groups.inner_width())), dz(z.size()), dy(place(count * width)),
              dheads(heads.size());
          groups.inner(count, heads, z);
          for (std::int64_t n = 0; n < count; ++n) {
            fetch_rows<T>(doutput, rows[place(n)], 1,
                          std::span<T>(dy).subspan(place(n * width), place(width)));
          }
          groups.outer().pull_back_input(count, dy, dz);
          groups.outer().pull_back_weight(count, z, dy, o_b.at(shard));
          groups.pull_back_inner(count, heads, dz, dheads, *o_a.at(shard));
          for (std::int64_t n = 0; n < count; ++n) {
            const std::span<T> row =
                std::span<T>(dheads).subspan(place(n * channels), place(channels));
            projection_->turn_back_transposed(tokens[place(i)][place(n)], row);
            std::copy(row.begin(), row.end(),
                      dattention.values.begin() + rows[place(n)] * channels);
          }
        }
      });
  o_a.fold();
  o_b.fold();
}

#define INSTANTIATE(T)                    \
  template void Layer<T>::write_output(); \
  template void Layer<T>::pull_back_output(const StoredTensor&, Array<T>&, Gradients<T>&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
