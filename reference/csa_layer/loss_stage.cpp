#include "reference/csa_layer/layer.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {

// The loss sees the indexer's rows, the main queries, blocks and window, and the selection if it is sparse.
template <class T> indexer_loss::Tensors Layer<T>::loss_tensors(Sizes& sizes) const {
  indexer_loss::Tensors in;
  if (in_.indexer.given.scores.given()) {
    in.scores = in_.indexer.given.scores;
  } else {
    in.index_q = index_q_view_;
    in.index_k = index_k_view_;
    in.index_w = index_w_view_;
  }
  in.query = view(query_rows_, "query");
  in.key = with_axis(view(out_.compressed, "compressed"), 2);
  in.kv = view(out_.kv, "kv");
  in.sink = in_.sink;
  in.mask = in_.mask;
  if (options_.loss->sparse) {
    const csa_attention::Inputs attention = attention_inputs();
    in.selected = attention.selected;
    in.indices = attention.indices;
  }
  in.given_log_mass = in_.given_log_mass;
  in.given_head_sum = in_.given_head_sum;
  in.given_target = in_.given_target;
  indexer_loss::check(in, loss_options(options_), true);
  for (const char* letter : {"B", "T", "S", "N"}) sizes.set(letter, sizes_[letter], "");
  return in;
}

template <class T> void Layer<T>::take_loss() {
  out_.loss = Array<T>(Shape{});
  if (!takes_loss_) return;
  Sizes sizes;
  const indexer_loss::Tensors in = loss_tensors(sizes);
  auto out = indexer_loss::forward<T>(in, loss_options(options_), run_, sizes);
  if (routing_.computes_loss) out_.loss = std::move(out.loss);
  out_.row_loss = std::move(out.row_loss);
  out_.row_valid = std::move(out.row_valid);
  out_.log_mass = std::move(out.log_mass);
  out_.head_sum = std::move(out.head_sum);
  out_.target = std::move(out.target);
  out_.student = std::move(out.student);
}

// Into the indexer alone: what the loss sends to x and to the query latent is dropped.
template <class T> void Layer<T>::pull_back_loss(const StoredTensor& dloss, Gradients<T>& grad) {
  Array<T> dq(index_q_rows_.shape), dk(out_.indexer_index_k.shape), dw(index_w_rows_.shape);
  if (routing_.computes_loss && dloss.given()) {
    Sizes sizes;
    const indexer_loss::Tensors in = loss_tensors(sizes);
    indexer_loss::Cotangents cotangents;
    cotangents.loss = dloss;
    auto loss = indexer_loss::backward<T>(in, loss_options(options_), run_, sizes, cotangents);
    if (!in_.indexer.given.scores.given()) {  // given scores are constants
      dq = std::move(loss.index_q);
      dk = std::move(loss.index_k);
      dw = std::move(loss.index_w);
    }
  }
  indexer_->pull_back(run_, standing(), view(latent_rows_, "q_latent"), dq, dk, dw, grad.indexer);
}

#define INSTANTIATE(T)                                                 \
  template indexer_loss::Tensors Layer<T>::loss_tensors(Sizes&) const; \
  template void Layer<T>::take_loss();                                 \
  template void Layer<T>::pull_back_loss(const StoredTensor&, Gradients<T>&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
