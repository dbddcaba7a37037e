#include "reference/csa_layer/layer.hpp"
#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Adds dx of some tokens to their places.
template <class T>
void add_rows(std::span<const T> rows, TokenList tokens, std::int64_t width, Array<T>& to) {
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    for (std::int64_t i = 0; i < width; ++i) {
      to.values[place(tokens[n] * width + i)] += rows[n * place(width) + place(i)];
    }
  }
}

template <class T> Buffer<T> rows_of(const Array<T>& array, TokenList rows, std::int64_t width) {
  Buffer<T> taken(rows.size() * place(width));
  for (std::size_t n = 0; n < rows.size(); ++n) {
    std::copy_n(array.values.begin() + rows[n] * width, width,
                taken.begin() + static_cast<std::int64_t>(n) * width);
  }
  return taken;
}

}  // namespace

// Queries and window keys back to x and the weights. Tokens of a pass are distinct, so each dx row has one writer.
template <class T>
void Layer<T>::pull_back_tokens(Array<T>& dquery, Array<T>& dkv, Gradients<T>& grad) {
  const std::int64_t width = sizes_["E"], channels = sizes_["D"], heads = sizes_["H"];
  const auto rows = blocks_of(rows_), row_tokens = blocks_of(row_tokens_),
             windows = blocks_of(window_tokens_);
  const auto count_rows = static_cast<std::int64_t>(rows.size()),
             count_windows = static_cast<std::int64_t>(windows.size());
  ProjectionSums<T> sums(in_, grad, std::max(count_rows, count_windows));
  if (!in_.given_query.given()) {
    for_each_shard(run_, count_rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Tokens& tokens = row_tokens[place(i)];
        Queries<T> block = projection_->make_q_latent(tokens);
        Buffer<T> query(tokens.size() * place(heads * channels)), dx(tokens.size() * place(width)),
            dq = rows_of(dquery, rows[place(i)], heads * channels);
        projection_->make_query(block, query);
        projection_->pull_back_query(block, dq, dx, sums, shard);
        add_rows<T>(dx, tokens, width, grad.x);
      }
    });
  }
  if (!in_.given_kv.given()) {
    for_each_shard(run_, count_windows,
                   [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       const Tokens& tokens = windows[place(i)];
                       Buffer<T> kv(tokens.size() * place(channels)),
                           dx(tokens.size() * place(width)), d = rows_of(dkv, tokens, channels);
                       const Keys<T> block = projection_->make_kv(tokens, kv);
                       projection_->pull_back_kv(block, d, dx, sums, shard);
                       add_rows<T>(dx, tokens, width, grad.x);
                     }
                   });
  }
  sums.fold();
}

template <class T> Gradients<T> Layer<T>::backward(const Cotangents& cotangents) {
  if (!cotangents.output.given())
    throw Error("cot.output", "nothing", "a cotangent of the output: a layer needs it");
  Cotangents named = cotangents;
  Sizes sizes = sizes_;
  sizes.unify_all(named);
  note_inputs(false);
  project();
  index();
  compress();
  attend();
  Gradients<T> grad;
  grad.x = Array<T>(in_.x.shape);
  Array<T> dattention;
  pull_back_output(cotangents.output, dattention, grad);

  // Attention, then what made its queries and keys. The selection is constant.
  Run run = run_;
  run.outputs.clear();
  csa_attention::Cotangents through;
  through.output = view(dattention, "attention_output");
  const csa_attention::Options options = attention_options();
  csa_attention::Problem<T> problem(attention_inputs(), options);
  auto back = problem.backward(run, through);
  grad.sink = std::move(back.sink);
  pull_back_tokens(back.query, back.kv, grad);
  if (options_.blocks()) {
    if (in_.given_compressed.given()) attended_.assign(attended_.size(), 0);  // constants
    compression_->pull_back(run_, attended_, back.compressed, grad);
  }

  if (options_.indexer) pull_back_loss(cotangents.loss, grad);
  return grad;
}

#define INSTANTIATE(T)                                                           \
  template void Layer<T>::pull_back_tokens(Array<T>&, Array<T>&, Gradients<T>&); \
  template Gradients<T> Layer<T>::backward(const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
