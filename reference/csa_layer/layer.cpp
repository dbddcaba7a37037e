#include "reference/csa_layer/layer.hpp"

#include <algorithm>

#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_layer {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

const Inputs& checked(const Inputs& in, const Options& options) {
  check(in, options);
  return in;
}

}  // namespace

template <class T> Layer<T>::Layer(const Inputs& in, const Options& options, const Run& run)
    : in_(checked(in, options)), options_(options), run_(run), sizes_(sizes_of(in_, options)) {
  check_widths(options, sizes_);
  visibility_.emplace(options.mask, in_.mask, sizes_, blocks_of(options));
  const bool sparse = options.loss && options.loss->sparse;
  routing_ = stage_routing::route({stage_routing::Model::v4, stage_routing::Mode::train,
                                   options.indexer.has_value(), sparse,
                                   options.loss ? options.loss->coefficient : 0});
  takes_loss_ = options.loss && (routing_.computes_loss || layer::wants_loss(run));
  projection_.emplace(in_, options, sizes_, *visibility_);
  place_rows();
  if (options.blocks()) {
    if (options.kind == Kind::csa) csa_compress::blocks_of(compress_options(options), in_.mask);
    compression_.emplace(in_, options, *visibility_, sizes_["D"]);
  }
  if (!options.indexer) return;
  check_slots(checked_k(options.indexer->k, "option indexer.k"), sizes_["B"] * sizes_["T"],
              "option indexer.k");
  layer::check_selection(routing_.computes_loss, sparse,
                         options.loss && options.loss->allow_full_selection, *options.indexer->k,
                         sizes_["N"], "N");
}

template <class T> void Layer<T>::place_rows() {
  const std::int64_t tokens = visibility_->tokens();
  std::int64_t width = *options_.window;
  if (takes_loss_ && options_.loss->teacher != indexer_loss::Teacher::own)
    width = std::max(width, options_.loss->window.value_or(0));
  std::vector<char> in_window(place(visibility_->batch() * tokens), 0);
  for (std::int64_t b = 0; b < visibility_->batch(); ++b) {
    for (std::int64_t t = 0; t < visibility_->rows(); ++t) {
      if (!visibility_->real(b, t)) continue;
      rows_.push_back(b * visibility_->rows() + t);
      row_tokens_.push_back(b * tokens + visibility_->row_token(t));
      for (const std::int64_t s : visibility_->window(b, t, width))
        in_window[place(b * tokens + s)] = 1;
    }
  }
  for (std::size_t i = 0; i < in_window.size(); ++i) {
    if (in_window[i] != 0) window_tokens_.push_back(static_cast<std::int64_t>(i));
  }
  if (!options_.blocks()) return;
  seen_blocks_ = csa_compress::seen_blocks(*visibility_);
  const auto add = [&](const MaskOptions& mask) {  // of a part that has a mask of its own
    if (mask == options_.mask) return;
    Sizes sizes = sizes_;
    const std::vector<char> more =
        csa_compress::seen_blocks(Visibility(mask, in_.mask, sizes, blocks_of(options_)));
    for (std::size_t i = 0; i < more.size(); ++i)
      seen_blocks_[i] = static_cast<char>(seen_blocks_[i] | more[i]);
  };
  if (options_.indexer) add(indexer_options(options_).mask);
  if (options_.loss) add(loss_options(options_).mask);
}

// Padding is read as zeros, given stages where nobody reads them as they are. What no row reads is computed only for
// outputs that restate tokens, from what is stored: a NaN there is nobody's error.
template <class T> void Layer<T>::note_inputs(bool forward) {
  const std::int64_t batch = visibility_->batch(), tokens = visibility_->tokens();
  const RowNote otherwise = forward ? RowNote::unread : RowNote::blank;
  RowNotes windows(place(batch * tokens), otherwise), rows = windows;
  for (const std::int64_t token : row_tokens_) rows[place(token)] = RowNote::as_stored;
  for (const std::int64_t token : window_tokens_) windows[place(token)] = RowNote::as_stored;
  if (!in_.x.notes) {  // a call over its state says itself what it reads
    RowNotes notes(place(batch * tokens), otherwise);
    for (const std::int64_t token : row_tokens_) notes[place(token)] = RowNote::as_stored;
    for (const std::int64_t token : window_tokens_) notes[place(token)] = RowNote::as_stored;
    if (compression_) compression_->mark_read(seen_blocks_, notes);
    for (std::int64_t i = 0; i < batch * tokens; ++i) {
      if (visibility_->padding(i / tokens, i % tokens)) notes[place(i)] = RowNote::blank;
    }
    in_.x.notes = std::make_shared<const RowNotes>(std::move(notes));
  }
  const auto of_rows = std::make_shared<const RowNotes>(std::move(rows));
  for (StoredTensor* given : {&in_.given_query, &in_.given_q_latent, &in_.indexer.given.index_q,
                              &in_.indexer.given.index_w}) {
    given->notes = of_rows;
  }
  in_.given_kv.notes = std::make_shared<const RowNotes>(std::move(windows));
  if (!options_.blocks()) return;
  RowNotes blocks(seen_blocks_.size(), otherwise);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (seen_blocks_[i] != 0) blocks[i] = RowNote::as_stored;
  }
  in_.given_compressed.notes = in_.indexer.given.index_k.notes =
      std::make_shared<const RowNotes>(std::move(blocks));
}

template <class T> void Layer<T>::project() {
  const std::int64_t channels = sizes_["D"], heads = sizes_["H"], rank = sizes_["Rq"];
  latent_rows_ = Array<T>(sizes_.shape("B T Rq"));
  query_rows_ = Array<T>(sizes_.shape("B T H D"));
  const auto rows = blocks_of(rows_), row_tokens = blocks_of(row_tokens_);
  for_each_row(run_, static_cast<std::int64_t>(rows.size()), [&](std::int64_t i) {
    const std::vector<std::int64_t>&tokens = row_tokens[place(i)], &to = rows[place(i)];
    Queries<T> block = projection_->make_q_latent(tokens);
    Buffer<T> query(tokens.size() * place(heads * channels));
    if (!in_.given_query.given()) projection_->make_query(block, query);
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      const std::span<T> q =
          std::span<T>(query).subspan(n * place(heads * channels), place(heads * channels));
      if (in_.given_query.given()) fetch_rows<T>(in_.given_query, tokens[n] * heads, heads, q);
      std::copy(q.begin(), q.end(), query_rows_.values.begin() + to[n] * heads * channels);
      std::copy_n(block.latent.begin() + static_cast<std::int64_t>(n) * rank, rank,
                  latent_rows_.values.begin() + to[n] * rank);
    }
  });
  out_.kv = Array<T>(sizes_.shape("B S D"));
  const auto windows = blocks_of(window_tokens_);
  for_each_row(run_, static_cast<std::int64_t>(windows.size()), [&](std::int64_t i) {
    const std::vector<std::int64_t>& tokens = windows[place(i)];
    Buffer<T> kv(tokens.size() * place(channels));
    if (!in_.given_kv.given()) projection_->make_kv(tokens, kv);
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      const std::span<T> row = std::span<T>(kv).subspan(n * place(channels), place(channels));
      if (in_.given_kv.given()) fetch_rows<T>(in_.given_kv, tokens[n], 1, row);
      std::copy(row.begin(), row.end(), out_.kv.values.begin() + tokens[n] * channels);
    }
  });
}

template <class T> csa_attention::Options Layer<T>::attention_options() const {
  csa_attention::Options options;
  options.mask = options_.mask;
  options.window = options_.window;
  if (options_.blocks()) {
    options.m = options_.m;
    options.grid = options_.grid;
  }
  return options;
}

template <class T> csa_attention::Inputs Layer<T>::attention_inputs() const {
  csa_attention::Inputs a;
  a.mask = in_.mask;
  a.query = view(query_rows_, "query");
  a.kv = view(out_.kv, "kv");
  if (options_.blocks()) a.compressed = view(out_.compressed, "compressed");
  a.sink = in_.sink;
  if (!routing_.attends_all) {
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
  const csa_attention::Options options = attention_options();
  const csa_attention::Problem<T> problem(attention_inputs(), options);
  auto out = problem.forward(run);
  out_.attention_output = std::move(out.output);
  out_.attention_lse = std::move(out.lse);
  out_.attention_max_logit = std::move(out.max_logit);
}

// Outputs over all tokens: those of rows are there, the others are made for this.
template <class T> void Layer<T>::restate() {
  const std::int64_t tokens = sizes_["B"] * sizes_["S"], heads = sizes_["H"],
                     channels = sizes_["D"], rank = sizes_["Rq"];
  Tokens all(place(tokens));
  for (std::int64_t i = 0; i < tokens; ++i) all[place(i)] = i;
  const auto blocks = blocks_of(all);
  const auto each_block = [&](auto f) {
    for_each_row(run_, static_cast<std::int64_t>(blocks.size()),
                 [&](std::int64_t i) { f(blocks[place(i)]); });
  };
  if (wants("query") || wants("q_latent")) {
    if (wants("query")) out_.query = Array<T>(sizes_.shape("B S H D"));
    if (wants("q_latent")) out_.q_latent = Array<T>(sizes_.shape("B S Rq"));
    each_block([&](const Tokens& block) {
      Queries<T> queries = projection_->make_q_latent(block);
      if (wants("q_latent")) {
        std::copy(queries.latent.begin(), queries.latent.end(),
                  out_.q_latent.values.begin() + block[0] * rank);
      }
      if (!wants("query")) return;
      const std::span<T> to =
          std::span<T>(out_.query.values)
              .subspan(place(block[0] * heads * channels), block.size() * place(heads * channels));
      if (in_.given_query.given()) {
        fetch_rows<T>(in_.given_query, block[0] * heads,
                      static_cast<std::int64_t>(block.size()) * heads, to);
      } else {
        projection_->make_query(queries, to);
      }
    });
  }
  if (options_.indexer && (wants("indexer_index_q") || wants("indexer_index_w"))) {
    Array<T> latent(sizes_.shape("B S Rq"));
    each_block([&](const Tokens& block) {
      const Queries<T> queries = projection_->make_q_latent(block);
      std::copy(queries.latent.begin(), queries.latent.end(),
                latent.values.begin() + block[0] * rank);
    });
    if (wants("indexer_index_q")) {
      out_.indexer_index_q = Array<T>(indexer_->sizes().shape("B S A e"));
      indexer_->make_q(run_, all, view(latent, "q_latent"), out_.indexer_index_q);
    }
    if (wants("indexer_index_w")) {
      out_.indexer_index_w = Array<T>(indexer_->sizes().shape("B S A"));
      indexer_->make_w(run_, all, out_.indexer_index_w);
    }
  }
  if (wants("kv")) {
    each_block([&](const Tokens& block) {
      const std::span<T> to =
          std::span<T>(out_.kv.values)
              .subspan(place(block[0] * channels), block.size() * place(channels));
      if (in_.given_kv.given()) {
        fetch_rows<T>(in_.given_kv, block[0], static_cast<std::int64_t>(block.size()), to);
      } else {
        projection_->make_kv(block, to);
      }
    });
  }
}

template <class T> Outputs<T> Layer<T>::forward() {
  note_inputs(true);
  project();
  index();
  compress();
  attend();
  write_output();
  take_loss();
  restate();
  const auto drop = [&](const char* name, auto& array) {
    if (!wants(name)) array = {};
  };
  drop("kv", out_.kv), drop("compressed", out_.compressed);
  drop("attention_output", out_.attention_output), drop("attention_lse", out_.attention_lse);
  drop("attention_max_logit", out_.attention_max_logit);
  drop("indexer_index_k", out_.indexer_index_k), drop("indexer_indices", out_.indexer_indices);
  drop("indexer_selected", out_.indexer_selected), drop("row_loss", out_.row_loss);
  drop("row_valid", out_.row_valid), drop("log_mass", out_.log_mass);
  return std::move(out_);
}

#define INSTANTIATE(T) template class Layer<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_layer
