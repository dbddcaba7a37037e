// reference/csa_layer/layer.hpp
//
// The stages of one layer, forward and back: what each needs is handed on as a view. What only rows have (query
// latents, queries, indexer queries and head weights) is held for rows, [B, T, …]; of window keys and blocks those
// that rows need are made, in arrays over all of them. Used by csa_layer and, over its state, by csa_step.
#pragma once
#include "reference/csa_attention/problem.hpp"
#include "reference/csa_indexer/tokens.hpp"
#include "reference/csa_layer/compression.hpp"
#include "reference/csa_layer/projection.hpp"
#include "reference/indexer_loss/loss.hpp"
#include "reference/stage_routing/stage_routing.hpp"

namespace plumbline::csa_layer {

// Which inputs belong to which options.
void check(const Inputs& in, const Options& options);
// Options of the parts that their widths bound, under the names that the layer has for them.
void check_widths(const Options& options, const Sizes& sizes);
// Letters of all tensors, N of the grid among them. Planes over blocks that a window alone has no use for are dropped.
Sizes sizes_of(Inputs& in, const Options& options);
Blocks blocks_of(const Options& options);

template <class T> class Layer {
 public:
  // Checks everything that does not depend on the data and places the rows. One object serves one call.
  Layer(const Inputs& in, const Options& options, const Run& run);

  // How each token of x is read.
  const RowNotes& reading() {
    note_inputs(true);
    return *in_.x.notes;
  }
  Outputs<T> forward();
  Gradients<T> backward(const Cotangents& cotangents);

 private:
  using Tokens = std::vector<std::int64_t>;  // or blocks; over batch and sequence

  bool wants(std::string_view name) const { return run_.wants(name); }
  void place_rows();
  void note_inputs(bool forward);
  void project();  // query latents, queries, window keys
  void index();    // indexer and selection
  void compress();
  void attend();
  void write_output();
  void take_loss();
  void restate();  // outputs on request that stand over all tokens

  Tokens standing() const;  // the token of each row [B, T], −1 for one that is not real
  std::vector<char> attended_blocks() const;
  csa_attention::Inputs attention_inputs() const;
  csa_attention::Options attention_options() const;
  indexer_loss::Tensors loss_tensors(Sizes& sizes) const;

  void pull_back_output(const StoredTensor& doutput, Array<T>& dattention, Gradients<T>& grad);
  void pull_back_tokens(Array<T>& dquery, Array<T>& dkv, Gradients<T>& grad);
  void pull_back_loss(const StoredTensor& dloss, Gradients<T>& grad);

  Inputs in_;
  const Options& options_;
  Run run_;
  Sizes sizes_;
  std::optional<Visibility> visibility_;
  stage_routing::Routing routing_{};
  bool takes_loss_ = false;
  std::optional<Projection<T>> projection_;
  std::optional<Compression<T>> compression_;
  std::optional<csa_indexer::Inputs> indexer_in_;
  std::optional<csa_indexer::Tokens<T>> indexer_;

  Tokens rows_;                    // b·T + t of the real rows, ascending
  Tokens row_tokens_;              // the token each stands at
  Tokens window_tokens_;           // tokens in some row's window, ascending
  std::vector<char> attended_;     // of them those whose numbers are read
  std::vector<char> seen_blocks_;  // [B, N] seen by some row
  Array<T> latent_rows_, query_rows_, index_q_rows_, index_w_rows_;
  StoredTensor index_q_view_, index_k_view_, index_w_view_;
  Outputs<T> out_;
};

}  // namespace plumbline::csa_layer
