#include "reference/csa_compress/compressor.hpp"

#include <algorithm>

#include "reference/csa_compress/block_runs.hpp"
#include "reference/error.hpp"
#include "reference/linear/rows.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/rms_norm/rms_row.hpp"

namespace plumbline::csa_compress {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Blocks blocks_of(const Options& options, const MaskInputs& mask, const std::string& where) {
  if (!options.m) throw Error(where + "m", "nothing", "m >= 1");
  if (*options.m < 1) throw Error(where + "m", std::to_string(*options.m), "m >= 1");
  if (options.boundary == Boundary::segments && !mask.segment_ids.given() &&
      !mask.cu_seqlens.given()) {
    throw Error(where + "boundary", "segments without segment_ids or cu_seqlens", "one of them");
  }
  return {*options.m, options.grid};
}

void check_parts(const Parts& parts, const Options& options, const std::string& where) {
  check_eps(options.eps, where + "eps");
  if (parts.norm_weight.given() && !options.norm) {
    throw Error(parts.norm_weight.name, "the tensor beside norm false", "none, or norm true");
  }
  const StoredTensor *kv = &parts.prior_kv, *gate = &parts.prior_gate;
  for (const StoredTensor* prior : {kv, gate, &parts.prior_present}) {
    if (!prior->given()) continue;
    if (!options.overlap)
      throw Error(prior->name, "the tensor beside overlap false", "none: there is no lane A");
    if (options.grid == Grid::document) {
      throw Error(prior->name, "the tensor beside grid document",
                  "none: documents are cut from their first token");
    }
  }
  if (kv->given() != gate->given()) {
    throw Error(kv->given() ? kv->name : gate->name,
                kv->given() ? "no prior_gate beside it" : "no prior_kv beside it", "both of them");
  }
  for (std::int64_t b = 0; !kv->given() && parts.prior_present.given() &&
                           parts.prior_present.shape.size() == 1 && b < parts.prior_present.size(0);
       ++b) {
    if (boolean_at(parts.prior_present, {b})) {
      throw Error(parts.prior_present.name + "[" + std::to_string(b) + "]",
                  "true without prior_kv and prior_gate", "both of them, or false");
    }
  }
}

std::vector<char> seen_blocks(const Visibility& visibility) {
  const std::int64_t count = visibility.keys();
  std::vector<char> seen(place(visibility.batch() * count), 0);
  for (std::int64_t b = 0; b < visibility.batch(); ++b) {
    for (std::int64_t t = 0; t < visibility.rows(); ++t) {
      if (!visibility.real(b, t)) continue;
      for (std::int64_t key = 0, end = visibility.keys_end(t); key < end; ++key) {
        char& mark = seen[place(b * count + key)];
        if (mark == 0 && visibility.visible(b, t, key)) mark = 1;
      }
    }
  }
  return seen;
}

template <class T>
typename Compressor<T>::Source stored_tokens(const StoredTensor& kv, const StoredTensor& gate) {
  return [&kv, &gate](std::int64_t b, std::int64_t first, std::int64_t last, std::span<T> to_kv,
                      std::span<T> to_gate) {
    fetch_rows<T>(kv, b * kv.size(1) + first, last - first, to_kv);
    fetch_rows<T>(gate, b * gate.size(1) + first, last - first, to_gate);
    this_work().rows_fetched += 2 * (last - first);
  };
}

template <class T>
Compressor<T>::Compressor(const Visibility& tokens, const Parts& parts, const Options& options,
                          std::int64_t width, const std::string& where)
    : tokens_(tokens),
      parts_(parts),
      grid_(options.grid),
      boundary_(options.boundary),
      m_(options.m.value_or(0)),
      width_(width),
      lanes_(options.overlap ? 2 : 1),
      count_(tokens.block_count()),
      norm_(options.norm),
      eps_(options.eps) {
  check_parts(parts, options, where);
  for (std::int64_t b = 0; b < tokens.batch(); ++b) {
    const bool there = parts.prior_kv.given() &&
                       (!parts.prior_present.given() || boolean_at(parts.prior_present, {b}));
    present_.push_back(there ? 1 : 0);
  }
  if (parts.position_bias.given() && count_ > 0) {
    bias_.resize(rows_size());
    fetch_rows<Exact<T>>(parts.position_bias, 0, m_, std::span<Exact<T>>(bias_));
  }
  if (parts.norm_weight.given() && count_ > 0) {
    norm_weight_.resize(place(width_));
    fetch<Exact<T>>(parts.norm_weight, {}, norm_weight_);
  }
  if (options.rope) rotation_.emplace(*options.rope, width_, where + "rope");
}

// Lane A: the block before, unless that is another document's.
template <class T>
typename Compressor<T>::Before Compressor<T>::before(std::int64_t b, std::int64_t j) const {
  if (lanes_ == 1) return Before::nothing;
  if (j == 0) return present_[place(b)] != 0 ? Before::prior : Before::nothing;
  const std::int64_t first = tokens_.block_first(j), last = tokens_.block_first(j - 1);
  const bool follows = grid_ == Grid::physical && boundary_ == Boundary::positions
                           ? tokens_.position(b, first) == tokens_.position(b, last) + m_
                           : tokens_.segment(b, first) == tokens_.segment(b, last);
  return follows ? Before::block : Before::nothing;
}

template <class T>
bool Compressor<T>::is_read(const Chosen& chosen, std::int64_t b, std::int64_t j) const {
  return among(chosen, b, j) || (among(chosen, b, j + 1) && before(b, j + 1) == Before::block);
}

template <class T> void Compressor<T>::mark_read(const Chosen& chosen, RowNotes& notes) const {
  for (std::int64_t b = 0; b < tokens_.batch(); ++b) {
    for (std::int64_t j = 0; j < count_; ++j) {
      if (!is_read(chosen, b, j)) continue;
      const std::int64_t at = b * tokens_.tokens() + tokens_.block_first(j);
      std::fill_n(notes.begin() + at, m_, RowNote::as_stored);
    }
  }
}

template <class T> void Compressor<T>::in_pieces(
    std::int64_t first, std::int64_t last,
    const std::function<void(std::int64_t, std::int64_t, std::size_t)>& f) const {
  for (std::int64_t j = first; j < last;) {
    std::int64_t next = j + 1;
    while (next < last && tokens_.block_first(next) == tokens_.block_first(next - 1) + m_) ++next;
    f(tokens_.block_first(j), tokens_.block_first(next - 1) + m_, place(j - first) * rows_size());
    j = next;
  }
}

template <class T>
void Compressor<T>::fetch_prior(std::int64_t b, std::span<T> kv, std::span<T> gate) const {
  fetch_rows<T>(parts_.prior_kv, b * m_, m_, kv);
  fetch_rows<T>(parts_.prior_gate, b * m_, m_, gate);
  this_work().rows_fetched += 2 * m_;
}

// Tokens of blocks [first, last), and of what stands in lane A of the first, if that is wanted.
template <class T>
typename Compressor<T>::Held Compressor<T>::hold(const Source& source, std::int64_t b,
                                                 std::int64_t first, std::int64_t last,
                                                 bool lane_a) const {
  const Before front = lane_a ? before(b, first) : Before::nothing;
  Held held;
  held.first = front == Before::nothing ? first : first - 1;
  held.kv.resize(place(last - held.first) * rows_size());
  held.gate.resize(held.kv.size());
  std::span<T> kv(held.kv), gate(held.gate);
  if (front == Before::prior) {
    fetch_prior(b, kv.first(rows_size()), gate.first(rows_size()));
    kv = kv.subspan(rows_size()), gate = gate.subspan(rows_size());
  }
  in_pieces(front == Before::block ? first - 1 : first, last,
            [&](std::int64_t from, std::int64_t to, std::size_t at) {
              const std::size_t size = place((to - from) * lanes_ * width_);
              source(b, from, to, kv.subspan(at, size), gate.subspan(at, size));
            });
  return held;
}

template <class T>
typename Compressor<T>::Rows Compressor<T>::rows(const Held& held, std::int64_t j) const {
  const std::size_t at = place(j - held.first) * rows_size();
  return {std::span<const T>(held.kv).subspan(at, rows_size()),
          std::span<const T>(held.gate).subspan(at, rows_size())};
}

// For each channel the softmax over the gates of both lanes, lane A's tokens first.
template <class T> void Compressor<T>::pool(const Rows* a, const Rows& own, std::span<T> pooled,
                                            std::span<T> weights) const {
  const std::int64_t stride = lanes_ * width_, lead = a == nullptr ? 0 : m_;
  Buffer<T> logits(place(lead + m_));
  const auto at = [&](std::int64_t i, std::int64_t c) {  // lane B follows lane A in a row
    return i < lead ? place(i * stride + c) : place((i - lead) * stride + stride - width_ + c);
  };
  for (std::int64_t c = 0; c < width_; ++c) {
    for (std::int64_t i = 0; i < lead + m_; ++i) {
      const T& gate = (i < lead ? *a : own).gate[at(i, c)];
      logits[place(i)] = bias_.empty() ? gate : T(gate + bias_[at(i, c)]);
    }
    LogSum<T> mass;
    mass.add_block(logits);
    T total(0);
    for (std::int64_t i = 0; i < lead + m_; ++i) {
      // Gates that are all −inf (nonfinite allow) have no softmax.
      const T weight = mass.empty() ? not_a_number<T>() : mass.weight(logits[place(i)]);
      total += weight * (i < lead ? *a : own).kv[at(i, c)];
      if (!weights.empty()) weights[place(i * width_ + c)] = weight;
    }
    pooled[place(c)] = total;
  }
  this_work().evaluations += (lead + m_) * width_;
}

template <class T>
T Compressor<T>::factor_of(std::int64_t b, std::int64_t j, std::span<const T> pooled) const {
  return rms_factor<T>(pooled, eps_, [&] {
    const std::int64_t at[] = {b, j};
    return "compressed, block " + to_string(Index(at));
  });
}

template <class T> void Compressor<T>::make_block(std::int64_t b, std::int64_t j, const Rows* a,
                                                  const Rows& own, std::span<T> compressed) const {
  pool(a, own, compressed, {});
  if (norm_) rms_scale<T>(compressed, factor_of(b, j, compressed), norm_weight_, compressed);
  if (rotation_)
    rotation_->apply(rotation_->at(tokens_.position(b, tokens_.block_first(j))), compressed);
  for (T& value : compressed) value = leave(value);
}

template <class T> void Compressor<T>::make(const Run& run, const Source& source,
                                            const Chosen& chosen, Array<T>& compressed) const {
  if (run.schedule.step > 0) return make_stepwise(run, source, chosen, compressed);
  const std::vector<BlockRun> runs =
      block_runs(0, blocks(), count_, blocks_of_a_run(m_),
                 [&](std::int64_t b, std::int64_t j) { return among(chosen, b, j); });
  for_each_row(run, static_cast<std::int64_t>(runs.size()), [&](std::int64_t i) {
    const auto [b, first, last] = runs[place(i)];
    const Held held = hold(source, b, first, last, true);
    for (std::int64_t j = first; j < last; ++j) {
      const bool alone = before(b, j) == Before::nothing;
      const Rows a = alone ? Rows{} : rows(held, j - 1);
      make_block(b, j, alone ? nullptr : &a, rows(held, j), compressed.row({b, j}, width_));
    }
  });
}

// A server's order: tokens enter the partial block `step` at a time; at m the block is pooled and becomes the prior.
// Each token is asked for once, and two blocks are held.
template <class T> void Compressor<T>::make_stepwise(const Run& run, const Source& source,
                                                     const Chosen& chosen,
                                                     Array<T>& compressed) const {
  for_each_row(run, count_ == 0 ? 0 : tokens_.batch(), [&](std::int64_t b) {
    Buffer<T> prior_kv(rows_size()), prior_gate(rows_size()), kv(rows_size()), gate(rows_size());
    if (before(b, 0) == Before::prior) fetch_prior(b, prior_kv, prior_gate);
    std::int64_t j = 0, entered = 0;  // of block j
    in_chunks(tokens_.tokens(), run.schedule.step, [&](std::int64_t, std::int64_t end) {
      while (j < count_ && tokens_.block_first(j) + entered < end) {
        const std::int64_t from = tokens_.block_first(j) + entered;
        const std::int64_t to = std::min(end, tokens_.block_first(j) + m_);
        const std::size_t at = place(entered * lanes_ * width_),
                          size = place((to - from) * lanes_ * width_);
        if (is_read(chosen, b, j)) {
          source(b, from, to, std::span<T>(kv).subspan(at, size),
                 std::span<T>(gate).subspan(at, size));
        }
        entered += to - from;
        if (entered < m_) continue;
        const Rows a{prior_kv, prior_gate}, own{kv, gate};
        if (among(chosen, b, j)) {
          make_block(b, j, before(b, j) == Before::nothing ? nullptr : &a, own,
                     compressed.row({b, j}, width_));
        }
        std::swap(prior_kv, kv), std::swap(prior_gate, gate);
        ++j, entered = 0;
      }
    });
  });
}

#define INSTANTIATE(T)          \
  template class Compressor<T>; \
  template Compressor<T>::Source stored_tokens<T>(const StoredTensor&, const StoredTensor&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::csa_compress
