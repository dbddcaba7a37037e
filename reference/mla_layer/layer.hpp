// reference/mla_layer/layer.hpp
//
// The stages of one layer, forward: what each needs is handed on as a view, never copied to a file's form. Used by
// the layer's forward and backward and, over its caches, by mla_step.
#pragma once
#include "reference/attention/attention.hpp"
#include "reference/dsa_indexer/tokens.hpp"
#include "reference/mla_attention/mla_attention.hpp"
#include "reference/mla_layer/mla_layer.hpp"
#include "reference/mla_projection/projection.hpp"

namespace plumbline::mla_layer {

// Which indexer tensors belong to which options.
void check_indexer(const Inputs& in, const Options& options);

template <class T> class Layer {
 public:
  // Checks everything that does not depend on the data and places the rows.
  Layer(const Inputs& in, const Options& options, const Run& run);

  Outputs<T> forward();
  Gradients<T> backward(const Cotangents& cotangents);

 private:
  using Runs = typename dsa_indexer::Tokens<T>::Runs;
  Runs runs_of(bool rows_only) const;
  bool wants(std::string_view name) const { return run_.wants(name); }
  bool computes_loss() const { return options_.loss && options_.loss->coefficient > 0; }
  bool takes_loss() const {  // also at coefficient 0, for its outputs on request
    return options_.loss && (computes_loss() || layer::wants_loss(run_));
  }
  bool expands() const {
    return !run_.schedule.absorbed || takes_loss() || wants("key") || wants("value");
  }

  void note_inputs(bool forward);
  void project();       // latents, queries, keys, values
  void index();         // the indexer's tokens and its selection
  void attend();        // attention
  void write_output();  // wo
  void take_loss();
  void gather_rows(const Array<T>& tokens, Array<T>& rows) const;  // [B, S, …] to [B, T, …]
  void scatter_rows(const Array<T>& rows, Array<T>& tokens) const;
  mla_attention::Inputs attention_inputs() const;
  mla_attention::Options attention_options() const;
  indexer_loss::Tensors loss_tensors(Sizes& sizes) const;
  indexer_loss::Options loss_options() const;
  IndexTensors index_tensors() const;

  Inputs in_;
  const Options& options_;
  Run run_;
  Sizes sizes_;
  std::optional<Visibility> visibility_;
  bool says_notes_ = false;
  std::shared_ptr<const RowNotes> notes_;
  std::shared_ptr<const std::vector<std::int32_t>> positions_;
  std::optional<mla_projection::Projection<T>> projection_;
  std::optional<dsa_indexer::Inputs> indexer_in_;
  std::optional<dsa_indexer::Tokens<T>> indexer_;

  Outputs<T> out_;
  Array<T> query_rows_, index_q_rows_, index_w_rows_;
  StoredTensor index_q_view_, index_k_view_, index_w_view_;
};

}  // namespace plumbline::mla_layer
