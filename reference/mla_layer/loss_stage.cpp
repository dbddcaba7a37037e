#include "reference/mla_layer/layer.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_layer {

template <class T> indexer_loss::Options Layer<T>::loss_options() const {
  indexer_loss::Options options = *options_.loss;
  options.mask = options_.mask;
  // Named by the loss, else by the indexer, else the preset's.
  const std::optional<ScoreScale>&own = options_.loss->named_score_scale,
        &indexers = options_.indexer->named_score_scale;
  options.score_scale = own ? *own : indexers.value_or(options_.loss->score_scale);
  return options;
}

// The loss sees the indexer's rows, the main queries and keys, and the selection if it is sparse.
template <class T> indexer_loss::Tensors Layer<T>::loss_tensors(Sizes& sizes) const {
  indexer_loss::Tensors in;
  if (in_.indexer.given.scores.given()) {
    in.scores = in_.indexer.given.scores;
  } else {
    in.index_q = view(index_q_rows_, "index_q");
    in.index_k = index_k_view_;
    in.index_w = view(index_w_rows_, "index_w");
  }
  in.query = view(query_rows_, "query");
  in.key = view(out_.key, "key");
  in.mask = in_.mask;
  if (options_.loss->sparse) {
    const mla_attention::Inputs attention = attention_inputs();
    in.selected = attention.selected;
    in.indices = attention.indices;
  }
  in.given_log_mass = in_.given_log_mass;
  in.given_head_sum = in_.given_head_sum;
  in.given_target = in_.given_target;
  indexer_loss::check(in, *options_.loss, false);
  sizes.set("B", sizes_["B"], "");
  sizes.set("T", sizes_["T"], "");
  sizes.set("S", sizes_["S"], "");
  return in;
}

template <class T> void Layer<T>::take_loss() {
  out_.loss = Array<T>(Shape{});
  if (!takes_loss()) return;
  gather_rows(out_.indexer_index_q, index_q_rows_);
  gather_rows(out_.indexer_index_w, index_w_rows_);
  Sizes sizes;
  const indexer_loss::Tensors in = loss_tensors(sizes);
  auto out = indexer_loss::forward<T>(in, loss_options(), run_, sizes);
  if (computes_loss()) out_.loss = std::move(out.loss);
  out_.row_loss = std::move(out.row_loss);
  out_.row_valid = std::move(out.row_valid);
  out_.log_mass = std::move(out.log_mass);
  out_.head_sum = std::move(out.head_sum);
  out_.target = std::move(out.target);
  out_.student = std::move(out.student);
}

#define INSTANTIATE(T)                                                 \
  template indexer_loss::Options Layer<T>::loss_options() const;       \
  template indexer_loss::Tensors Layer<T>::loss_tensors(Sizes&) const; \
  template void Layer<T>::take_loss();
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_layer
