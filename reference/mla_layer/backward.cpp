#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/mla_layer/layer.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Rows that are not real have no cotangent, whatever is stored there.
StoredTensor of_real_rows(StoredTensor cotangent, const Visibility& visibility) {
  RowNotes notes;
  for (std::int64_t b = 0; b < visibility.batch(); ++b) {
    for (std::int64_t t = 0; t < visibility.rows(); ++t) {
      notes.push_back(visibility.real(b, t) ? RowNote::as_stored : RowNote::blank);
    }
  }
  cotangent.notes = std::make_shared<const RowNotes>(std::move(notes));
  return cotangent;
}

}  // namespace

template <class T> Gradients<T> Layer<T>::backward(const Cotangents& cotangents) {
  if (!cotangents.output.given())
    throw Error("cot.output", "nothing", "a cotangent of the output: a layer needs it");
  Sizes sizes = sizes_;
  Cotangents named = cotangents;
  sizes.unify_all(named);
  note_inputs(false);
  project();
  index();
  attend();
  const std::int64_t rows = sizes_["B"] * sizes_["T"], heads = sizes_["H"], value = sizes_["dv"],
                     width = sizes_["E"];
  Gradients<T> grad;

  // Through wo, head by head.
  const StoredTensor doutput = of_real_rows(cotangents.output, *visibility_);
  Array<T> dattention(sizes_.shape("B T H dv"));
  WeightSum<T> wo(in_.wo, grad.wo, rows);
  const StoredTensor none;
  for_each_shard(run_, rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    Buffer<T> dy(place(width));
    for (std::int64_t row = begin; row < end; ++row) {
      fetch_rows<T>(doutput, row, 1, dy);
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::size_t at = place((row * heads + h) * value);
        const auto o = std::span<const T>(out_.attention_output.values).subspan(at, place(value));
        const StoredTensor weight = at_first(in_.wo, h);
        Contraction<T>(weight, none, columns_of(weight, std::nullopt, ""))
            .pull_back_input(1, dy, std::span<T>(dattention.values).subspan(at, place(value)));
        Array<T>& dwo = *wo.at(shard);
        for (std::int64_t v = 0; v < value; ++v) {
          for (std::int64_t i = 0; i < width; ++i) {
            dwo.values[place((h * value + v) * width + i)] += o[place(v)] * dy[place(i)];
          }
        }
      }
    }
  });
  wo.fold();

  // Attention, then the projections. The selection is constant.
  Run run = run_;
  run.outputs.clear();
  const bool absorbed =
      run_.schedule.absorbed && !in_.given_key.given() && !in_.given_value.given();
  run.schedule.absorbed = absorbed;
  attention::Cotangents through;
  through.output = view(dattention, "attention_output");
  auto back = mla_attention::Op::backward<T>(attention_inputs(), attention_options(), run, through);
  mla_projection::Cotangents to;
  Array<T> dquery;
  scatter_rows(back.query, dquery);
  if (!in_.given_query.given()) to.query = view(dquery, "query");
  if (absorbed) {
    to.kv_latent = view(back.kv_latent, "kv_latent");
    to.k_pe = view(back.k_pe, "k_pe");
  } else {
    if (!in_.given_key.given()) to.key = view(back.key, "key");
    if (!in_.given_value.given()) to.value = view(back.value, "value");
  }
  grad.projection = mla_projection::Op::backward<T>(in_.projection, options_.projection, run_, to);
  const auto add = [](Array<T>& total, const Array<T>& more) {
    for (std::size_t i = 0; i < more.values.size(); ++i) total.values[i] += more.values[i];
  };
  if (absorbed) {
    add(grad.projection.wkv_b, back.wkv_b);
    add(grad.projection.bkv_b, back.bkv_b);
  }

  // The loss, into the indexer alone: what it sends to x and to the query latent is dropped.
  if (!options_.indexer) return grad;
  Array<T> dq(out_.indexer_index_q.shape), dk(out_.indexer_index_k.shape),
      dw(out_.indexer_index_w.shape);
  if (computes_loss() && cotangents.loss.given()) {
    gather_rows(out_.indexer_index_q, index_q_rows_);
    gather_rows(out_.indexer_index_w, index_w_rows_);
    Sizes loss_sizes;
    const indexer_loss::Tensors in = loss_tensors(loss_sizes);
    indexer_loss::Cotangents through_loss;
    through_loss.loss = cotangents.loss;
    auto loss = indexer_loss::backward<T>(in, loss_options(), run_, loss_sizes, through_loss);
    if (!in_.indexer.given.scores.given()) {  // given scores are constants
      scatter_rows(loss.index_q, dq);
      scatter_rows(loss.index_w, dw);
      dk = std::move(loss.index_k);
    }
  }
  indexer_->pull_back(run_, dq, dk, dw, grad.indexer);
  return grad;
}

#define INSTANTIATE(T) template Gradients<T> Layer<T>::backward(const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_layer
