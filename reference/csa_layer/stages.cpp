// The stages between projections and attention: indexer and selection, and the blocks that rows attend to.
#include "reference/csa_layer/layer.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

template <class T> typename Layer<T>::Tokens Layer<T>::standing() const {
  Tokens tokens(place(sizes_["B"] * sizes_["T"]), -1);
  for (std::size_t n = 0; n < rows_.size(); ++n) tokens[place(rows_[n])] = row_tokens_[n];
  return tokens;
}

template <class T> void Layer<T>::index() {
  if (!options_.indexer) return;
  const csa_indexer::Options options = indexer_options(options_);
  indexer_in_.emplace(in_.indexer);
  indexer_in_->x = in_.x;
  indexer_in_->mask = in_.mask;
  indexer_.emplace(*indexer_in_, options, RowNote::unread, "option indexer.");
  index_q_rows_ = Array<T>({sizes_["B"], sizes_["T"], sizes_["A"], sizes_["e"]});
  index_w_rows_ = Array<T>(sizes_.shape("B T A"));
  out_.indexer_index_k = Array<T>(sizes_.shape("B N e"));
  const Tokens tokens = standing();
  indexer_->make_q(run_, tokens, view(latent_rows_, "q_latent"), index_q_rows_);
  indexer_->make_w(run_, tokens, index_w_rows_);
  std::vector<char> blocks = seen_blocks_;
  if (wants("indexer_index_k")) blocks.assign(blocks.size(), 1);
  indexer_->make_k(run_, blocks, out_.indexer_index_k);
  index_q_view_ = view(index_q_rows_, "index_q");
  index_k_view_ = view(out_.indexer_index_k, "index_k");
  index_w_view_ = view(index_w_rows_, "index_w");
  const IndexTensors tensors{&index_q_view_,      &index_k_view_, &index_w_view_,
                             options.score_scale, true,           true};
  const bool as_set = options.tie == Tie::threshold && !in_.indexer.given.indices.given();
  auto chosen = indexer::select_rows<T>(
      tensors, indexer_->visibility(), options, in_.indexer.given, run_, wants("indexer_scores"),
      as_set || in_.indexer.given.selected.given() || wants("indexer_selected"));
  out_.indexer_scores = std::move(chosen.scores);
  out_.indexer_indices = std::move(chosen.indices);
  out_.indexer_selected = std::move(chosen.selected);
}

// Blocks whose numbers somebody reads: all that rows see where attention or the loss's teacher does, else those
// selected.
template <class T> std::vector<char> Layer<T>::attended_blocks() const {
  const bool of_loss =
      takes_loss_ && (!options_.loss->sparse ||
                      options_.loss->restrict_to == indexer_loss::Restrict::after_softmax);
  if (routing_.attends_all || of_loss) return seen_blocks_;
  const csa_attention::Options options = attention_options();
  const csa_attention::Inputs in = attention_inputs();
  const attention::Selection selection{in.selected, in.indices, options.strict_selection,
                                       options.duplicates};
  std::vector<char> attended(seen_blocks_.size(), 0);
  for (const std::int64_t row : rows_) {
    const std::int64_t b = row / visibility_->rows(), t = row % visibility_->rows();
    for (const std::int64_t j : attention::keys_of(selection, *visibility_, b, t))
      attended[place(b * visibility_->keys() + j)] = 1;
  }
  return attended;
}

template <class T> void Layer<T>::compress() {
  if (!options_.blocks()) return;
  const std::int64_t channels = sizes_["D"];
  out_.compressed = Array<T>(sizes_.shape("B N D"));
  std::vector<char> chosen = attended_blocks();
  attended_ = chosen;
  if (wants("compressed")) chosen.assign(chosen.size(), 1);
  if (!in_.given_compressed.given()) {
    compression_->make(run_, chosen, out_.compressed);
    return;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == 0) continue;
    const auto at = static_cast<std::int64_t>(i);
    fetch_rows<T>(
        in_.given_compressed, at, 1,
        std::span<T>(out_.compressed.values).subspan(place(at * channels), place(channels)));
  }
}

#define INSTANTIATE(T)                                          \
  template Layer<T>::Tokens Layer<T>::standing() const;         \
  template void Layer<T>::index();                              \
  template std::vector<char> Layer<T>::attended_blocks() const; \
  template void Layer<T>::compress();
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
