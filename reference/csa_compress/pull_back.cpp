#include <algorithm>

#include "reference/csa_compress/block_runs.hpp"
#include "reference/csa_compress/compressor.hpp"
#include "reference/linear/weight_sum.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/rms_norm/rms_row.hpp"

// The way back through one block. With w the weights of a channel, v its values, p = Σ w·v the pooled number and d
// the cotangent of p behind norm and rotation,
//     dv_i = w_i·d,   dgate_i = dbias_i = w_i·d·(v_i − p).
// Lane A of block j and its own tokens are different tokens; a token has lane B from its own block and lane A from
// the next. So tokens are cut into runs of blocks, and a run takes back its own blocks and the one after it: that one
// is pooled twice, and every token is complete when it is handed on.

namespace plumbline::csa_compress {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

template <class T> struct Compressor<T>::Sums {
  WeightSum<T> bias, norm;
  Sums(const Parts& parts, PartGradients<T>& grad, std::int64_t blocks)
      : bias(parts.position_bias, grad.position_bias, blocks),
        norm(parts.norm_weight, grad.norm_weight, blocks) {}
};

template <class T>
void Compressor<T>::pull_run(const Source& source, const Chosen& chosen,
                             const Array<T>& dcompressed, const Receiver& receive,
                             std::int64_t shard, std::int64_t b, std::int64_t first,
                             std::int64_t last, Sums& sums, PartGradients<T>& grad) const {
  const bool after = among(chosen, b, last) && before(b, last) == Before::block;
  const Held held = hold(source, b, first, after ? last + 1 : last, among(chosen, b, first));
  const std::int64_t stride = lanes_ * width_;
  Buffer<T> dkv(place(last - first) * rows_size()), dgate(dkv.size());
  Buffer<T> pooled(place(width_)), weights(place(lanes_ * m_ * width_));
  for (std::int64_t j = first; j < (after ? last + 1 : last); ++j) {
    if (!among(chosen, b, j)) continue;
    const bool own_run = j < last;
    const Before front = before(b, j);
    const Rows a = front == Before::nothing ? Rows{} : rows(held, j - 1), own = rows(held, j);
    pool(front == Before::nothing ? nullptr : &a, own, pooled, weights);
    const auto given = dcompressed.row({b, j}, width_);
    Buffer<T> dy(given.begin(), given.end());
    if (rotation_)
      rotation_->pull_back(rotation_->at(tokens_.position(b, tokens_.block_first(j))), dy);
    Buffer<T> d(place(width_));
    if (norm_) {
      rms_pull_back<T>(pooled, factor_of(b, j, pooled), norm_weight_, dy, d,
                       own_run ? sums.norm.values(shard) : std::span<T>());
    } else {
      std::copy(dy.begin(), dy.end(), d.begin());
    }
    // One lane's tokens: where they stand in a row, where their weights begin, where their gradients go.
    const auto pull_lane = [&](const Rows& tokens, std::int64_t channel, std::int64_t weight,
                               std::span<T> to_kv, std::span<T> to_gate, std::span<T> to_bias) {
      for (std::int64_t i = 0; i < m_; ++i) {
        for (std::int64_t c = 0; c < width_; ++c) {
          const std::size_t at = place(i * stride + channel + c);
          const T dv = weights[place((weight + i) * width_ + c)] * d[place(c)];
          const T dg = dv * (tokens.kv[at] - pooled[place(c)]);
          if (!to_kv.empty()) to_kv[at] += dv, to_gate[at] += dg;
          if (!to_bias.empty()) to_bias[at] += dg;
        }
      }
    };
    const std::span<T> bias = own_run ? sums.bias.values(shard) : std::span<T>();
    const auto tokens_at = [&](Buffer<T>& all, std::int64_t block) {
      return std::span<T>(all).subspan(place(block - first) * rows_size(), rows_size());
    };
    if (front == Before::prior) {
      pull_lane(a, 0, 0, grad.prior_kv.row({b}, m_ * stride), grad.prior_gate.row({b}, m_ * stride),
                bias);
    } else if (front == Before::block && j > first) {
      pull_lane(a, 0, 0, tokens_at(dkv, j - 1), tokens_at(dgate, j - 1), bias);
    } else if (front == Before::block) {  // its tokens are another run's
      pull_lane(a, 0, 0, {}, {}, bias);
    }
    if (own_run) {
      pull_lane(own, stride - width_, front == Before::nothing ? 0 : m_, tokens_at(dkv, j),
                tokens_at(dgate, j), bias);
    }
  }
  in_pieces(first, last, [&](std::int64_t from, std::int64_t to, std::size_t at) {
    const std::size_t size = place((to - from) * stride);
    receive(shard, b, from, to, std::span<const T>(dkv).subspan(at, size),
            std::span<const T>(dgate).subspan(at, size));
  });
}

template <class T> void Compressor<T>::pull_back(const Run& run, const Source& source,
                                                 const Chosen& chosen, const Array<T>& dcompressed,
                                                 const Receiver& receive,
                                                 PartGradients<T>& grad) const {
  if (parts_.prior_kv.given()) {
    grad.prior_kv = Array<T>(parts_.prior_kv.shape);
    grad.prior_gate = Array<T>(parts_.prior_gate.shape);
  }
  Sums sums(parts_, grad, blocks());
  for_each_shard(run, blocks(), [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    for (const auto& [b, first, last] :
         block_runs(begin, end, count_, blocks_of_a_run(m_),
                    [&](std::int64_t at_b, std::int64_t j) { return is_read(chosen, at_b, j); })) {
      pull_run(source, chosen, dcompressed, receive, shard, b, first, last, sums, grad);
    }
  });
  sums.bias.fold();
  sums.norm.fold();
}

#define INSTANTIATE(T)                                                                        \
  template void Compressor<T>::pull_back(const Run&, const Source&, const Chosen&,            \
                                         const Array<T>&, const Receiver&, PartGradients<T>&) \
      const;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_compress
