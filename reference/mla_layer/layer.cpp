#include "reference/mla_layer/layer.hpp"

#include <algorithm>

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/stage_routing/stage_routing.hpp"

namespace plumbline::mla_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

void need(const StoredTensor& tensor, const char* name) {
  if (!tensor.given())
    throw Error(std::string("in.") + name, "nothing", "the tensor: option indexer is given");
}
void exclude(const StoredTensor& tensor) {
  if (tensor.given()) throw Error(tensor.name, "the tensor", "none: option indexer is null");
}

}  // namespace

void check_indexer(const Inputs& in, const Options& options) {
  const dsa_indexer::Inputs& weights = in.indexer;
  if (options.loss && !options.indexer) {
    throw Error("option loss", "a loss without option indexer", "an indexer, or loss null");
  }
  if (options.loss && options.loss->teacher != indexer_loss::Teacher::own) {
    throw Error("option loss.teacher", "a joint teacher",
                "own: window and sink stand beside compressed blocks only");
  }
  if (!options.indexer) {
    for (const StoredTensor* weight :
         {&weights.wq_b, &weights.wk, &weights.k_norm_weight, &weights.k_norm_bias,
          &weights.weights_proj, &weights.given.index_q, &weights.given.index_k,
          &weights.given.index_w, &weights.given.scores, &weights.given.indices,
          &weights.given.selected}) {
      exclude(*weight);
    }
    return;
  }
  need(weights.wq_b, "indexer_wq_b");
  need(weights.wk, "indexer_wk");
  need(weights.k_norm_weight, "indexer_k_norm_weight");
  need(weights.k_norm_bias, "indexer_k_norm_bias");
  need(weights.weights_proj, "indexer_weights_proj");
  if (in.projection.wq.given() && !in.projection.given_q_latent.given()) {
    throw Error(in.projection.wq.name, "a direct query weight with an indexer",
                "wq_a, q_norm and wq_b, or given.q_latent: the indexer reads the query latent");
  }
}

template <class T> Layer<T>::Layer(const Inputs& in, const Options& options, const Run& run)
    : in_(in), options_(options), run_(run) {
  check_indexer(in_, options_);
  if (in_.mask.row_index.given())
    sizes_.set("T", in_.mask.row_index.size(0), in_.mask.row_index.name);
  const auto width = [&](const char* letter, const std::optional<std::int64_t>& value,
                         const char* name) {
    if (value) sizes_.set(letter, *value, name);
  };
  width("dn", options.projection.nope_dim, "option nope_dim");
  width("dr", options.projection.rope_dim, "option rope_dim");
  width("dv", options.projection.v_dim, "option v_dim");
  sizes_.unify(in_.projection.x, "B S E");
  if (!in_.mask.row_index.given()) sizes_.set("T", sizes_["S"], "S, without in.row_index");
  sizes_.unify_all(in_);
  visibility_.emplace(options.mask, in_.mask, sizes_, Blocks{});
  notes_ = std::make_shared<const RowNotes>(visibility_->notes(RowNote::blank));

  auto positions = std::make_shared<std::vector<std::int32_t>>();
  for (std::int64_t i = 0; i < sizes_["B"] * sizes_["S"]; ++i) {
    positions->push_back(
        static_cast<std::int32_t>(visibility_->position(i / sizes_["S"], i % sizes_["S"])));
  }
  positions_ = positions;
  StoredTensor& at = in_.projection.positions;
  at = StoredTensor{};
  at.name = "positions";
  at.data = reinterpret_cast<const std::byte*>(positions_->data());
  at.dtype = Dtype::i32;
  at.shape = {sizes_["B"], sizes_["S"]};
  at.stride = row_major(at.shape);
  at.present = true;
  says_notes_ = in.projection.x.notes != nullptr;  // a call over caches says itself what it reads
  note_inputs(true);
  projection_.emplace(in_.projection, options.projection, run.schedule.sliced);

  if (options.indexer) {
    check_slots(checked_k(options.indexer->k, "option indexer.k"), sizes_["B"] * sizes_["T"],
                "option indexer.k");
    const bool sparse = options.loss && options.loss->sparse;
    layer::check_selection(computes_loss(), sparse,
                           options.loss && options.loss->allow_full_selection, *options.indexer->k,
                           sizes_["S"], "S");
  }
}

// Tokens to work on, cut where blocks end: those that stand as rows, or all that anybody reads. All of them when an
// output over tokens is asked for.
template <class T> typename Layer<T>::Runs Layer<T>::runs_of(bool rows_only) const {
  static constexpr std::string_view over_tokens[] = {
      "query",     "q_latent", "indexer_index_q", "indexer_index_w", "key", "value",
      "kv_latent", "k_pe",     "indexer_index_k"};
  bool all = false;
  for (const std::string_view name : over_tokens) all = all || wants(name);
  std::vector<char> take(notes_->size(), all ? 1 : 0);
  for (std::int64_t b = 0; b < visibility_->batch(); ++b) {
    for (std::int64_t t = 0; t < visibility_->rows(); ++t) {
      if (visibility_->real(b, t))
        take[place(b * visibility_->tokens() + visibility_->row_token(t))] = 1;
    }
  }
  for (std::size_t i = 0; i < take.size() && !rows_only; ++i) {
    if ((*notes_)[i] == RowNote::as_stored) take[i] = 1;
  }
  Runs runs;
  for (std::size_t i = 0; i < take.size(); ++i) {
    if (take[i] == 0) continue;
    const auto at = static_cast<std::int64_t>(i);
    if (runs.empty() || runs.back()[1] != at || at - runs.back()[0] == rows_of_a_block)
      runs.push_back({at, at});
    runs.back()[1] = at + 1;
  }
  return runs;
}

// Padding is read as zeros. What no row reads is computed only for outputs that restate tokens, from what is stored: a
// NaN there is nobody's error, and on the way back it is not there.
template <class T> void Layer<T>::note_inputs(bool forward) {
  const RowNote otherwise = forward ? RowNote::unread : RowNote::blank;
  RowNotes notes = *notes_;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i), tokens = visibility_->tokens();
    if (notes[i] == RowNote::blank && !visibility_->padding(at / tokens, at % tokens))
      notes[i] = otherwise;
  }
  const auto of_keys = std::make_shared<const RowNotes>(std::move(notes)),
             of_rows = std::make_shared<const RowNotes>(visibility_->row_notes(otherwise));
  if (!says_notes_) in_.projection.x.notes = of_keys;
  for (StoredTensor* given : {&in_.projection.given_kv_latent, &in_.projection.given_k_pe,
                              &in_.given_key, &in_.given_value}) {
    given->notes = of_keys;
  }
  for (StoredTensor* given : {&in_.projection.given_q_latent, &in_.given_query})
    given->notes = of_rows;
}

template <class T> void Layer<T>::gather_rows(const Array<T>& tokens, Array<T>& rows) const {
  const std::int64_t width = static_cast<std::int64_t>(tokens.values.size()) /
                             std::max<std::int64_t>(1, tokens.shape[0] * tokens.shape[1]);
  Shape shape = tokens.shape;
  shape[1] = visibility_->rows();
  rows = Array<T>(shape);
  for (std::int64_t b = 0; b < visibility_->batch(); ++b) {
    for (std::int64_t t = 0; t < visibility_->rows(); ++t) {
      const auto from = tokens.row({b, visibility_->row_token(t)}, width);
      std::copy(from.begin(), from.end(), rows.row({b, t}, width).begin());
    }
  }
}

template <class T> void Layer<T>::scatter_rows(const Array<T>& rows, Array<T>& tokens) const {
  const std::int64_t width = static_cast<std::int64_t>(rows.values.size()) /
                             std::max<std::int64_t>(1, rows.shape[0] * rows.shape[1]);
  Shape shape = rows.shape;
  shape[1] = visibility_->tokens();
  tokens = Array<T>(shape);
  for (std::int64_t b = 0; b < visibility_->batch(); ++b) {
    for (std::int64_t t = 0; t < visibility_->rows(); ++t) {
      const auto from = rows.row({b, t}, width);
      std::copy(from.begin(), from.end(),
                tokens.row({b, visibility_->row_token(t)}, width).begin());
    }
  }
}

template <class T> void Layer<T>::project() {
  const auto made = [&](Array<T>& array, const char* letters) {
    array = Array<T>(sizes_.shape(letters));
  };
  made(out_.query, "B S H dn+dr");
  made(out_.kv_latent, "B S Rkv");
  made(out_.k_pe, "B S dr");
  if (sizes_.known("Rq")) made(out_.q_latent, "B S Rq");
  if (expands()) made(out_.key, "B S H dn+dr"), made(out_.value, "B S H dv");
  const auto part = [](Array<T>& array, std::int64_t first, std::int64_t count) {
    const std::int64_t width = static_cast<std::int64_t>(array.values.size()) /
                               std::max<std::int64_t>(1, array.shape[0] * array.shape[1]);
    return std::span<T>(array.values).subspan(place(first * width), place(count * width));
  };
  const auto copy = [&](const Buffer<T>& from, Array<T>& to, std::int64_t first,
                        std::int64_t count) {
    std::copy(from.begin(), from.end(), part(to, first, count).begin());
  };
  const std::int64_t heads = sizes_["H"];
  const Runs rows = runs_of(true), keys = runs_of(false);
  for_each_row(run_, static_cast<std::int64_t>(rows.size()), [&](std::int64_t i) {
    const auto [first, last] = rows[place(i)];
    mla_projection::Tokens<T> tokens = projection_->read(first, last - first);
    projection_->make_q_latent(tokens);
    if (!projection_->direct()) {
      copy(tokens.q_latent, out_.q_latent, first, last - first);
    } else if (in_.projection.given_q_latent.given()) {
      fetch_rows<T>(in_.projection.given_q_latent, first, last - first,
                    part(out_.q_latent, first, last - first));
    }
    if (in_.given_query.given()) {
      fetch_rows<T>(in_.given_query, first * heads, (last - first) * heads,
                    part(out_.query, first, last - first));
    } else {
      projection_->make_query(tokens, part(out_.query, first, last - first));
    }
  });
  for_each_row(run_, static_cast<std::int64_t>(keys.size()), [&](std::int64_t i) {
    const auto [first, last] = keys[place(i)];
    const std::int64_t count = last - first;
    mla_projection::Tokens<T> tokens = projection_->read(first, count);
    projection_->make_kv_latent(tokens);
    copy(tokens.kv_latent, out_.kv_latent, first, count);
    copy(tokens.k_pe, out_.k_pe, first, count);
    if (!expands()) return;
    projection_->make_key_value(tokens, part(out_.key, first, count),
                                part(out_.value, first, count));
    if (in_.given_key.given())
      fetch_rows<T>(in_.given_key, first * heads, count * heads, part(out_.key, first, count));
    if (in_.given_value.given()) {
      fetch_rows<T>(in_.given_value, first * heads, count * heads, part(out_.value, first, count));
    }
  });
  gather_rows(out_.query, query_rows_);
}

template <class T> IndexTensors Layer<T>::index_tensors() const {
  return {&index_q_view_, &index_k_view_, &index_w_view_, options_.indexer->score_scale, true};
}

template <class T> void Layer<T>::index() {
  if (!options_.indexer) return;
  indexer_in_.emplace(in_.indexer);
  indexer_in_->x = in_.projection.x;
  indexer_in_->q_latent = view(out_.q_latent, "q_latent");
  indexer_in_->mask = in_.mask;
  dsa_indexer::Options options = *options_.indexer;
  options.mask = options_.mask;
  indexer_.emplace(*indexer_in_, options, RowNote::blank, "option indexer.");
  out_.indexer_index_q = Array<T>(indexer_->sizes().shape("B S A e"));
  out_.indexer_index_k = Array<T>(indexer_->sizes().shape("B S e"));
  out_.indexer_index_w = Array<T>(indexer_->sizes().shape("B S A"));
  const Runs rows = runs_of(true), keys = runs_of(false);
  indexer_->make_q(run_, rows, out_.indexer_index_q);
  indexer_->make_k(run_, keys, out_.indexer_index_k);
  indexer_->make_w(run_, rows, out_.indexer_index_w);
  index_q_view_ = view(out_.indexer_index_q, "index_q");
  index_k_view_ = view(out_.indexer_index_k, "index_k");
  index_w_view_ = view(out_.indexer_index_w, "index_w");
  const bool as_set = options.tie == Tie::threshold && !in_.indexer.given.indices.given();
  auto chosen = indexer::select_rows<T>(
      index_tensors(), *visibility_, options, in_.indexer.given, run_, wants("indexer_scores"),
      as_set || in_.indexer.given.selected.given() || wants("indexer_selected"));
  out_.indexer_scores = std::move(chosen.scores);
  out_.indexer_indices = std::move(chosen.indices);
  out_.indexer_selected = std::move(chosen.selected);
}

template <class T> mla_attention::Options Layer<T>::attention_options() const {
  mla_attention::Options options;
  options.mask = options_.mask;
  options.nope_dim = options_.projection.nope_dim;
  options.v_dim = options_.projection.v_dim;
  return options;
}

template <class T> mla_attention::Inputs Layer<T>::attention_inputs() const {
  mla_attention::Inputs a;
  a.mask = in_.mask;
  a.query = view(query_rows_, "query");
  const bool replaced = in_.given_key.given() || in_.given_value.given();
  if (run_.schedule.absorbed && !replaced) {
    a.kv_latent = view(out_.kv_latent, "kv_latent");
    a.k_pe = view(out_.k_pe, "k_pe");
    a.wkv_b = in_.projection.wkv_b;
    a.bkv_b = in_.projection.bkv_b;
  } else {
    a.key = view(out_.key, "key");
    a.value = view(out_.value, "value");
  }
  if (options_.indexer) {
    if (out_.indexer_selected.given() && !in_.indexer.given.indices.given()) {
      a.selected = view(out_.indexer_selected, "indexer_selected");
    } else {
      a.indices = view(out_.indexer_indices, "indexer_indices");
    }
  }
  a.given_output = in_.given_attention_output;
  a.given_lse = in_.given_attention_lse;
  a.given_max_logit = in_.given_attention_max_logit;
  return a;
}

template <class T> void Layer<T>::attend() {
  Run run = run_;
  run.outputs.clear();
  if (wants("attention_max_logit")) run.outputs.insert("max_logit");
  if (in_.given_key.given() || in_.given_value.given()) run.schedule.absorbed = false;
  auto out = mla_attention::Op::forward<T>(attention_inputs(), attention_options(), run);
  out_.attention_output = std::move(out.output);
  out_.attention_lse = std::move(out.lse);
  out_.attention_max_logit = std::move(out.max_logit);
}

// output[b, t] = Σ_h wo[h]ᵀ attention_output[b, t, h], heads in order.
template <class T> void Layer<T>::write_output() {
  const std::int64_t rows = sizes_["B"] * sizes_["T"], heads = sizes_["H"], value = sizes_["dv"],
                     width = sizes_["E"];
  out_.output = Array<T>(sizes_.shape("B T E"));
  const StoredTensor none;
  for_each_block(run_, rows, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t count = last - first;
    Buffer<T> head(place(count * value)), product(place(count * width));
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t n = 0; n < count; ++n) {
        const auto from = std::span<const T>(out_.attention_output.values)
                              .subspan(place(((first + n) * heads + h) * value), place(value));
        std::copy(from.begin(), from.end(), head.begin() + n * value);
      }
      const StoredTensor wo = at_first(in_.wo, h);
      Contraction<T>(wo, none, columns_of(wo, std::nullopt, "")).apply(count, head, product);
      for (std::int64_t n = 0; n < count; ++n) {
        const std::int64_t b = (first + n) / sizes_["T"], t = (first + n) % sizes_["T"];
        if (!visibility_->real(b, t)) continue;
        for (std::int64_t i = 0; i < width; ++i) {
          out_.output.values[place((first + n) * width + i)] += product[place(n * width + i)];
        }
      }
    }
  });
}

template <class T> Outputs<T> Layer<T>::forward() {
  project();
  index();
  attend();
  write_output();
  take_loss();
  const auto drop = [&](const char* name, auto& array) {
    if (!wants(name)) array = {};
  };
  drop("query", out_.query), drop("key", out_.key), drop("value", out_.value);
  drop("q_latent", out_.q_latent), drop("kv_latent", out_.kv_latent), drop("k_pe", out_.k_pe);
  drop("attention_output", out_.attention_output), drop("attention_lse", out_.attention_lse);
  drop("attention_max_logit", out_.attention_max_logit),
      drop("indexer_index_q", out_.indexer_index_q);
  drop("indexer_index_k", out_.indexer_index_k), drop("indexer_index_w", out_.indexer_index_w);
  drop("indexer_indices", out_.indexer_indices), drop("indexer_selected", out_.indexer_selected);
  drop("row_loss", out_.row_loss), drop("row_valid", out_.row_valid),
      drop("log_mass", out_.log_mass);
  return std::move(out_);
}

#define INSTANTIATE(T) template class Layer<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_layer
