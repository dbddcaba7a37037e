#include "reference/indexer_loss/teacher.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::indexer_loss {

template <class T>
TeacherRow<T>::TeacherRow(const Tensors& tensors, const Options& options, const Run& run,
                          const Visibility& visibility, std::span<const T> sink, std::int64_t b,
                          std::int64_t t)
    : tensors_(tensors),
      options_(options),
      run_(run),
      visibility_(visibility),
      sink_(sink),
      b_(b),
      t_(t),
      heads_(tensors.query.size(2)),
      width_(tensors.query.size(3)),
      key_heads_(tensors.key.size(2)),
      scale_(constant<T>(options.softmax_scale)) {}

template <class T>
void TeacherRow<T>::fetch_queries(std::int64_t first, std::int64_t last, Operands<T>& q) const {
  const auto width = static_cast<std::size_t>(width_);
  q.resize(static_cast<std::size_t>(last - first) * width);
  for (std::int64_t h = first; h < last; ++h) {
    q.fetch(tensors_.query, {b_, t_, h}, static_cast<std::size_t>(h - first) * width, width);
  }
}

// The logits of one key under heads [first, last); a key head is fetched once for the heads that share it.
template <class T> void TeacherRow<T>::logits(std::int64_t first, std::int64_t last,
                                              const Operands<T>& q, std::int64_t key,
                                              std::span<T> c) const {
  const auto width = static_cast<std::size_t>(width_);
  Operands<T> k;
  k.resize(width);
  std::int64_t fetched = -1;
  for (std::int64_t h = first; h < last; ++h) {
    const std::int64_t key_head = h * key_heads_ / heads_;
    if (key_head != fetched) {
      k.fetch(tensors_.key, {b_, key, key_head}, 0, width);
      ++this_work().rows_fetched;
      fetched = key_head;
    }
    const auto i = static_cast<std::size_t>(h - first);
    c[i] = round_at(Point::scores, T(scale_ * dot(q.row(i * width, width), k.row(0, width))));
  }
}

// A forward's own log_mass comes back as it was: +inf under a +inf sink, −inf for an empty sum, and nowhere else.
template <class T> T TeacherRow<T>::read_log_mass(std::int64_t head, const KeySet& keys) const {
  const StoredTensor& given = tensors_.given_log_mass;
  const T value = element<T>(given, {b_, t_, head});
  if (is_nan(value)) return fetch_one<T>(given, {b_, t_, head});
  KeySet::Block any;
  std::int64_t cursor = 0;
  if (value == -infinity<T>() && given.nonfinite == NonFinite::error && keys.next(cursor, 1, any)) {
    const std::int64_t place[] = {b_, t_, head};
    throw Error(given.name + to_string(Index(place)), "-inf in a row that has keys",
                "ln Z of at least one key");
  }
  return value;
}

template <class T> void TeacherRow<T>::find_log_mass(const KeySet& keys) {
  const auto heads = static_cast<std::size_t>(heads_);
  if (tensors_.given_log_mass.given()) {
    given_.resize(heads);
    for (std::size_t h = 0; h < heads; ++h) {
      given_[h] = read_log_mass(static_cast<std::int64_t>(h), keys);
    }
    return;
  }
  mass_.resize(heads);
  const bool over_visible = options_.restrict_to == Restrict::after_softmax;
  const std::int64_t block =
      run_.schedule.key_block == 0 && !run_.schedule.barrier ? 64 : run_.schedule.key_block;
  // key_block 0: one head after another over all keys, the maximum first. Else: blocks, a running maximum.
  in_chunks(heads_, block == 0 ? 1 : run_.schedule.head_chunk,
            [&](std::int64_t first, std::int64_t last) {
              const auto count = static_cast<std::size_t>(last - first);
              Operands<T> q;
              KeySet::Block part;
              for (std::int64_t cursor = 0; over_visible ? keys.next_visible(cursor, block, part)
                                                         : keys.next(cursor, block, part);) {
                if (q.empty()) fetch_queries(first, last, q);
                const std::size_t n = part.keys.size();
                Buffer<T> c(count), by_head(count * n);
                for (std::size_t j = 0; j < n; ++j) {
                  logits(first, last, q, part.keys[j], c);
                  for (std::size_t i = 0; i < count; ++i) by_head[i * n + j] = c[i];
                }
                for (std::size_t i = 0; i < count; ++i) {
                  mass_[static_cast<std::size_t>(first) + i].add_block(
                      std::span<const T>(by_head).subspan(i * n, n));
                }
                this_work().normaliser_evaluations += static_cast<std::int64_t>(n * count);
              }
              if (options_.teacher != Teacher::own) {
                if (q.empty() && options_.window.value_or(0) > 0) fetch_queries(first, last, q);
                add_window(first, last, q);
              }
            });
  log_of_sum_.resize(heads);
  for (std::size_t h = 0; h < heads; ++h) log_of_sum_[h] = mass_[h].log_of_sum();
}

// A joint teacher's denominator also holds the keys of the window and, unless the window stands alone, the sink.
template <class T>
void TeacherRow<T>::add_window(std::int64_t first, std::int64_t last, const Operands<T>& q) {
  const auto width = static_cast<std::size_t>(width_);
  Operands<T> k;
  k.resize(width);
  for (const std::int64_t s : visibility_.window(b_, t_, options_.window.value_or(0))) {
    k.fetch(tensors_.kv, {b_, s}, 0, width);
    ++this_work().rows_fetched;
    for (std::int64_t h = first; h < last; ++h) {
      const auto i = static_cast<std::size_t>(h - first);
      const T c =
          round_at(Point::scores, T(scale_ * dot(q.row(i * width, width), k.row(0, width))));
      mass_[static_cast<std::size_t>(h)].add(c);
      ++this_work().normaliser_evaluations;
    }
  }
  if (options_.teacher != Teacher::joint || sink_.empty()) return;
  for (std::int64_t h = first; h < last; ++h) {
    mass_[static_cast<std::size_t>(h)].add(sink_[static_cast<std::size_t>(h)]);
  }
}

template <class T> T TeacherRow<T>::log_mass(std::int64_t head) const {
  const auto h = static_cast<std::size_t>(head);
  return given_.empty() ? mass_[h].log() : given_[h];
}

template <class T> T TeacherRow<T>::log_probability(std::int64_t head, const T& c) const {
  const auto h = static_cast<std::size_t>(head);
  if (!given_.empty()) return c - share(Symbol::log_sum_exp, given_[h]);
  return mass_[h].log_weight(c, log_of_sum_[h]);
}

template <class T>
void TeacherRow<T>::log_head_sum(std::span<const std::int64_t> keys, std::span<T> out) const {
  if (keys.empty()) return;
  const bool chunked = run_.schedule.head_chunk > 0 && run_.schedule.head_chunk < heads_;
  Buffer<LogSum<T>> total(keys.size());
  in_chunks(heads_, run_.schedule.head_chunk, [&](std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::size_t>(last - first);
    Operands<T> q;
    fetch_queries(first, last, q);
    Buffer<T> c(count);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      logits(first, last, q, keys[j], c);
      for (std::size_t i = 0; i < count; ++i)
        c[i] = log_probability(first + static_cast<std::int64_t>(i), c[i]);
      if (!chunked) {
        total[j].add_block(c);
      } else {
        LogSum<T> partial;
        partial.add_block(c);
        total[j].add(partial);
      }
    }
    this_work().evaluations += static_cast<std::int64_t>(keys.size() * count);
  });
  for (std::size_t j = 0; j < keys.size(); ++j) out[j] = round_at(Point::head_sum, total[j].log());
}

#define INSTANTIATE(T) template class TeacherRow<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::indexer_loss
