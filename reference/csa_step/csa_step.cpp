#include "reference/csa_step/csa_step.hpp"

#include "reference/error.hpp"
#include "reference/layer/server_call.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::csa_step {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

void check_options(const csa_layer::Options& options) {
  layer::check_server_options(options.loss.has_value(), options.mask);
  if (options.grid == Grid::document) {
    throw Error("option grid", "document", "physical: the state cuts blocks from token 0");
  }
}

void check_pool(const PoolInputs& pool, const std::string& of, const char* blocks, bool there,
                bool two_lanes, const std::string& why) {
  const std::pair<const StoredTensor*, std::string> named[] = {
      {&pool.blocks, blocks},
      {&pool.partial_kv, of + "partial_kv"},
      {&pool.partial_gate, of + "partial_gate"},
      {&pool.prior_kv, of + "prior_kv"},
      {&pool.prior_gate, of + "prior_gate"}};
  for (std::size_t i = 0; i < std::size(named); ++i) {
    const auto& [tensor, name] = named[i];
    const bool wanted = there && (two_lanes || i < 3);
    if (wanted && !tensor->given())
      throw Error("in.state." + name, "nothing", "the tensor: " + why);
    if (!wanted && tensor->given()) throw Error(tensor->name, "the tensor", "none: " + why);
  }
}

Sizes checked(const Inputs& in, const csa_layer::Options& options) {
  layer::refuse_masks(in.refused);
  check_options(options);
  csa_layer::check(in.layer, options);
  const bool csa = options.kind == csa_layer::Kind::csa;
  const std::string kind =
      "option kind is " +
      std::string(names_of(options.kind)[static_cast<std::size_t>(options.kind)]);
  layer::need_state(in.length, "state.length", "the tensor [B]: tokens in the state");
  layer::need_state(in.old_positions, "state.positions", "the tensor [B, P]");
  layer::need_state(in.old_segments, "state.segment_ids", "the tensor [B, P]");
  check_pool(in.pool, "", "compressed", options.blocks(), csa, kind);
  check_pool(in.indexer, "indexer_", "indexer_index_k", options.indexer.has_value(), true,
             options.indexer ? "option indexer is given" : "option indexer is null");
  if (csa) layer::need_state(in.prior_present, "state.prior_present", "the tensor [B]");
  if (!csa && in.prior_present.given())
    throw Error(in.prior_present.name, "the tensor", "none: " + kind);

  Sizes sizes;
  sizes.unify(in.kv, "B P D");
  if (options.blocks()) {
    sizes.set("m", *options.m, "option m");
    sizes.set("C", (csa ? 2 : 1) * sizes["D"], csa ? "2D" : "D, option kind is hca");
    sizes.set("Q", sizes["P"] / *options.m, "floor(P/m)");
  }
  Inputs named = in;
  sizes.unify_all(named);
  csa_layer::check_widths(options, sizes);
  layer::check_lengths(in.length, sizes);
  return sizes;
}

// What the new rows read of the state. The rest (tokens out of every window, blocks of another document, a prior that
// another document's block left) may hold anything.
struct Reading {
  std::vector<char> kv, blocks;  // old tokens, old blocks
  bool partial = false;  // some row sees the block that the partial tokens begin, or the next
  bool first = false;    // some row sees the first
};

Reading reading_of(const csa_layer::Options& options, const std::vector<std::int32_t>& positions,
                   const std::vector<std::int32_t>& segments, std::int64_t before) {
  const auto all = static_cast<std::int64_t>(positions.size());
  std::vector<std::int32_t> standing;
  for (std::int64_t s = before; s < all; ++s) standing.push_back(static_cast<std::int32_t>(s));
  MaskInputs mask;
  mask.positions = layer::row_of_integers(positions, "positions");
  mask.segment_ids = layer::row_of_integers(segments, "segment_ids");
  mask.row_index = layer::list_of_integers(standing, "row_index");
  Reading reading;
  reading.kv.resize(place(before), 0);
  const auto look = [&](const MaskOptions& rules) {
    Sizes sizes;
    sizes.set("B", 1, "");
    sizes.set("S", all, "");
    sizes.set("T", all - before, "");
    const Visibility seen(rules, mask, sizes, csa_layer::blocks_of(options));
    for (std::int64_t t = 0; t < seen.rows(); ++t) {
      if (!seen.real(0, t)) continue;
      for (const std::int64_t s : seen.window(0, t, *options.window)) {
        if (s < before) reading.kv[place(s)] = 1;
      }
    }
    if (!options.blocks()) return;
    const std::size_t old = place(before / *options.m);
    reading.blocks.resize(old, 0);
    const std::vector<char> blocks = csa_compress::seen_blocks(seen);
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      if (blocks[j] == 0) continue;
      if (j < old) reading.blocks[j] = 1;
      reading.first = reading.first || j == old;
      reading.partial = reading.partial || j == old || j == old + 1;
    }
  };
  look(options.mask);
  if (options.indexer) look(csa_layer::indexer_options(options).mask);
  return reading;
}

// Rows [0, count) of one sequence; one that nobody reads may be anything.
template <class T, class Read> void read_rows(const StoredTensor& from, std::int64_t b,
                                              std::int64_t count, Read read, Array<T>& to) {
  StoredTensor unread = from;
  unread.nonfinite = NonFinite::allow;
  for (std::int64_t i = 0; i < count; ++i)
    fetch<T>(read(i) ? from : unread, {b, i}, to.row({0, i}, to.shape[2]));
}

// What is stored of one sequence, up to its length. options: with documents said.
template <class T> csa_layer::State<T> state_of(const Inputs& in, const csa_layer::Options& options,
                                                const Sizes& sizes, std::int64_t b,
                                                const layer::NewTokens& now) {
  auto state = csa_layer::empty_state<T>(sizes, options, sizes["P"]);
  state.length = integer_at(in.length, {b});
  for (std::int64_t s = 0; s < state.length; ++s) {
    state.positions.push_back(static_cast<std::int32_t>(integer_at(in.old_positions, {b, s})));
    state.segments.push_back(static_cast<std::int32_t>(integer_at(in.old_segments, {b, s})));
  }
  std::vector<std::int32_t> positions = state.positions, segments = state.segments;
  positions.insert(positions.end(), now.positions.begin(), now.positions.end());
  segments.insert(segments.end(), now.segments.begin(), now.segments.end());
  const Reading reading = reading_of(options, positions, segments, state.length);
  read_rows(
      in.kv, b, state.length, [&](std::int64_t s) { return reading.kv[place(s)] != 0; }, state.kv);
  if (!options.blocks()) return state;
  const std::int64_t m = *options.m;
  state.prior_present = in.prior_present.given() && boolean_at(in.prior_present, {b});
  const auto read = [&](const PoolInputs& from, csa_compress::Boundary boundary,
                        csa_layer::Pool<T>& to) {
    const csa_layer::Entering where{state.length, m, positions, segments, state.prior_present};
    const bool prior = reading.first && where.follows(boundary);
    const auto partial = [&](std::int64_t) { return reading.partial; };
    const auto before = [&](std::int64_t) { return prior; };
    read_rows(
        from.blocks, b, state.length / m,
        [&](std::int64_t j) { return reading.blocks[place(j)] != 0; }, to.blocks);
    read_rows(from.partial_kv, b, state.length % m, partial, to.partial_kv);
    read_rows(from.partial_gate, b, state.length % m, partial, to.partial_gate);
    if (!state.prior_present) return;
    read_rows(from.prior_kv, b, m, before, to.prior_kv);
    read_rows(from.prior_gate, b, m, before, to.prior_gate);
  };
  read(in.pool, options.boundary, state.pool);
  if (options.indexer)
    read(in.indexer, csa_layer::indexer_options(options).boundary, state.indexer);
  return state;
}

template <class T> PoolOutputs<T> made(const Sizes& sizes, const csa_layer::Pool<T>& like,
                                       const char* blocks, const char* lanes) {
  PoolOutputs<T> out;
  if (!like.blocks.given()) return out;
  out.blocks = Array<T>(sizes.shape(blocks));
  out.partial_kv = out.partial_gate = Array<T>(sizes.shape(lanes));
  if (like.prior_kv.given()) out.prior_kv = out.prior_gate = Array<T>(sizes.shape(lanes));
  return out;
}

template <class T> void write(const Array<T>& from, std::int64_t b, Array<T>& to) {
  if (!to.given()) return;
  std::copy(from.values.begin(), from.values.end(),
            to.row({b}, static_cast<std::int64_t>(from.values.size())).begin());
}
template <class T>
void write_pool(const csa_layer::Pool<T>& from, std::int64_t b, PoolOutputs<T>& to) {
  write(from.blocks, b, to.blocks);
  write(from.partial_kv, b, to.partial_kv);
  write(from.partial_gate, b, to.partial_gate);
  write(from.prior_kv, b, to.prior_kv);
  write(from.prior_gate, b, to.prior_gate);
}

}  // namespace

template <class T>
Outputs<T> Op::forward(const Inputs& in, const Options& options, const Run& run) {
  const Sizes sizes = checked(in, options);
  const std::int64_t batch = sizes["B"], fresh = sizes["L"], capacity = sizes["P"];
  Options inner = options;
  inner.mask.documents = options.mask.documents.value_or(true);
  Sizes shapes =
      sizes;  // of the layer's outputs: rows and tokens are the new ones, blocks those of the state
  shapes.set("T", fresh, "L");
  shapes.set("S", fresh, "L");
  if (options.blocks()) shapes.set("N", sizes["Q"], "floor(P/m)");
  const auto empty = csa_layer::empty_state<T>(sizes, options, capacity);
  Outputs<T> out;
  out.layer = csa_layer::whole_outputs<T>(shapes, options, run);
  out.length = Array<std::int32_t>({batch});
  out.positions = Array<std::int32_t>({batch, capacity});
  out.segments = Array<std::int32_t>({batch, capacity});
  out.kv = Array<T>(sizes.shape("B P D"));
  out.pool = made(sizes, empty.pool, "B Q D", "B m C");
  out.indexer = made(sizes, empty.indexer, "B Q e", "B m 2e");
  if (options.kind == csa_layer::Kind::csa) out.prior_present = Array<std::uint8_t>({batch});

  std::vector<std::int64_t> rows(place(fresh));
  for (std::int64_t i = 0; i < fresh; ++i) rows[place(i)] = i;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t before = integer_at(in.length, {b});
    const layer::NewTokens now =
        layer::new_tokens(in.layer.x, in.positions, in.segment_ids, b, before);
    auto state = state_of<T>(in, inner, sizes, b, now);
    if (fresh > 0) {
      auto part = csa_layer::advance<T>(in.layer, inner, run, now, {}, state);
      layer::place_outputs<T>(part, out.layer, {b, rows, 0, before});
    }
    out.length({b}) = static_cast<std::int32_t>(state.length);
    write(state.kv, b, out.kv);
    write_pool(state.pool, b, out.pool);
    write_pool(state.indexer, b, out.indexer);
    if (out.prior_present.given()) out.prior_present({b}) = state.prior_present ? 1 : 0;
    std::copy(state.positions.begin(), state.positions.end(),
              out.positions.row({b}, capacity).begin());
    std::copy(state.segments.begin(), state.segments.end(),
              out.segments.row({b}, capacity).begin());
  }
  return out;
}

template <class T>
Gradients<T> Op::backward(const Inputs&, const Options&, const Run&, const Cotangents&) {
  throw Error("csa_step", "a backward pass", "a forward pass: a call of a server has no gradients");
}

#define INSTANTIATE(T)                                                             \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);   \
  template Gradients<T> Op::backward<T>(const Inputs&, const Options&, const Run&, \
                                        const Cotangents&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_step
