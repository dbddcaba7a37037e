#include "reference/attention/row_heads.hpp"

#include "reference/numeric/contract.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::attention {

template <class T>
RowHeads<T>::RowHeads(const RowPlace<T>& place, std::span<const T> query, std::span<const T> sink)
    : place_(place),
      query_(query),
      heads_(static_cast<std::size_t>(place.last - place.first)),
      logits_(heads_.size() * (place.key_block == 0 || place.key_block > static_cast<std::int64_t>(
                                                                             place.keys.size())
                                   ? place.keys.size()
                                   : static_cast<std::size_t>(place.key_block))),
      key_(place.key_width),
      value_(place.value_width) {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    heads_[i].max_logit = -infinity<T>();
    if (sink.empty() || sink[i] == -infinity<T>()) continue;
    heads_[i].has_sink = true;
    heads_[i].sink = sink[i];
  }
}

template <class T> void RowHeads<T>::give(std::size_t head, const T& keys, const T& all) {
  heads_[head].given = true;
  heads_[head].given_keys = keys;
  heads_[head].given_all = share(Symbol::log_sum_exp, all);
}

template <class T> template <class F> void RowHeads<T>::each_block(F f) {
  const std::size_t count = place_.keys.size();
  const std::size_t block =
      place_.key_block == 0 ? count : static_cast<std::size_t>(place_.key_block);
  for (std::size_t first = 0; first < count; first += block)
    f(first, first + block < count ? first + block : count);
}

template <class T> void RowHeads<T>::find_logits(std::size_t first, std::size_t last) {
  const std::size_t count = last - first, width = static_cast<std::size_t>(place_.key_width);
  for (std::size_t j = 0; j < count; ++j) {
    const RowKey& at = place_.keys[first + j];
    key_.start(place_.sources[at.source].key, place_.b, at.key);
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const std::span<const T> k =
          key_.row(place_.first + static_cast<std::int64_t>(i), place_.heads);
      logits_[i * count + j] =
          round_at(Point::scores, T(place_.scale * dot<T>(query_.subspan(i * width, width), k)));
    }
  }
}

// One more block into a head's sums. Online, `all` waits for the values, which it is summed with.
template <class T> void RowHeads<T>::normalise(std::size_t i, std::span<const T> c) {
  HeadState<T>& head = heads_[i];
  for (const T& x : c) {
    if (is_nan(x) || x > head.max_logit) head.max_logit = x;  // a NaN stays: nothing is larger
  }
  if (!head.given && (!online_ || (head.has_sink && among_keys_))) head.keys.add_block(c);
}

template <class T> void RowHeads<T>::attend(std::span<T> output, bool among_keys) {
  online_ = place_.key_block > 0 && !output.empty();
  among_keys_ = among_keys;
  for (HeadState<T>& head : heads_) {
    if (head.has_sink) head.all.add(head.sink);
    head.unbounded = head.has_sink && head.sink == infinity<T>();
  }
  for (T& x : output) x = T(0);
  std::int64_t& evaluations =
      output.empty() ? this_work().normaliser_evaluations : this_work().evaluations;
  each_block([&](std::size_t first, std::size_t last) {
    const std::size_t count = last - first;
    find_logits(first, last);
    evaluations += static_cast<std::int64_t>(count * heads_.size());
    for (std::size_t i = 0; i < heads_.size(); ++i) normalise(i, logits(i, count));
    if (!online_) {
      for (HeadState<T>& head : heads_) {
        if (place_.key_block == 0) head.all.add(head.keys);
      }
    }
    if (!output.empty()) add_values(first, last, output);
  });
  kept_ = place_.key_block == 0;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    HeadState<T>& head = heads_[i];
    if (!online_ && place_.key_block > 0) head.all.add(head.keys);
    if (online_ && !head.has_sink) head.keys = head.all;
    if (output.empty()) continue;
    const auto width = static_cast<std::size_t>(place_.value_width);
    for (T& x : output.subspan(i * width, width)) {
      if (online_ && !head.given && !head.unbounded && head.all.scaled_sum() > T(0))
        x /= head.all.scaled_sum();
      x = round_at(Point::output, x);
    }
  }
}

// Online, output is Σ exp(c − max)·v under the running maximum: a larger one rescales what is
// there. Something infinite takes all the mass: what is there counts 0 (and NaN stays NaN), two
// infinite logits have no limit.
template <class T>
T RowHeads<T>::online_weight(HeadState<T>& head, const T& c, std::span<T> output) const {
  const typename LogSum<T>::Step step = head.all.add(c);
  if (is_nan(c)) return c;
  if (c == infinity<T>()) {
    if (head.unbounded) return not_a_number<T>();
    head.unbounded = true;
    for (T& x : output) x *= T(0);
    return T(1);
  }
  if (head.unbounded) return T(0);
  if (!(step.scale == T(1))) {
    for (T& x : output) x *= step.scale;
  }
  return step.term;
}

template <class T>
void RowHeads<T>::add_values(std::size_t first, std::size_t last, std::span<T> output) {
  const std::size_t count = last - first, width = static_cast<std::size_t>(place_.value_width);
  for (std::size_t j = 0; j < count; ++j) {
    const RowKey& at = place_.keys[first + j];
    value_.start(place_.sources[at.source].value, place_.b, at.key);
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const std::span<T> to = output.subspan(i * width, width);
      const T& c = logits_[i * count + j];
      const T p = round_at(Point::probabilities, online_ && !heads_[i].given
                                                     ? online_weight(heads_[i], c, to)
                                                     : heads_[i].weight(c));
      const std::span<const T> v =
          value_.row(place_.first + static_cast<std::int64_t>(i), place_.heads);
      for (std::size_t d = 0; d < width; ++d) to[d] += p * v[d];
    }
  }
}

template <class T> void RowHeads<T>::pull_back(const Pull& pull) {
  const auto width = static_cast<std::size_t>(place_.key_width),
             out = static_cast<std::size_t>(place_.value_width);
  each_block([&](std::size_t first, std::size_t last) {
    const std::size_t count = last - first;
    if (!kept_) {
      find_logits(first, last);
      this_work().evaluations += static_cast<std::int64_t>(count * heads_.size());
    }
    for (std::size_t j = 0; j < count; ++j) {
      const RowKey& at = place_.keys[first + j];
      const Source& source = place_.sources[at.source];
      key_.start(source.key, place_.b, at.key);
      value_.start(source.value, place_.b, at.key);
      for (std::size_t i = 0; i < heads_.size(); ++i) {
        const std::int64_t h = place_.first + static_cast<std::int64_t>(i);
        const std::span<const T> k = key_.row(h, place_.heads), v = value_.row(h, place_.heads);
        const std::span<const T> q = query_.subspan(i * width, width),
                                 g = pull.cotangent.subspan(i * out, out);
        const T& c = logits_[i * count + j];
        const T p = round_at(Point::probabilities, heads_[i].weight_again(c));
        T dc = p * (dot<T>(g, v) - pull.delta[i]);
        if (!(pull.lse[i] == T(0)))
          dc += pull.lse[i] * (pull.lse_counts_sink ? p : heads_[i].weight_among_keys(c));
        const T ds = place_.scale * round_at(Point::dscores, dc);

        for (std::size_t d = 0; d < width; ++d) pull.query[i * width + d] += ds * k[d];
        for (std::size_t d = 0; d < out && !pull.value_sum.empty(); ++d)
          pull.value_sum[i * out + d] += p * v[d];
        std::size_t d = 0;
        for (const Part& part : source.key) {
          T* to = gradient_of(part, pull.arrays, place_.b, at.key, h, place_.heads);
          for (std::int64_t n = 0; n < part.width; ++n, ++d) {
            if (to != nullptr) to[n] += leave(T(ds * q[d]));
          }
        }
        d = 0;
        for (const Part& part : source.value) {
          T* to = gradient_of(part, pull.arrays, place_.b, at.key, h, place_.heads);
          for (std::int64_t n = 0; n < part.width; ++n, ++d) {
            if (to != nullptr) to[n] += leave(T(p * g[d]));
          }
        }
      }
    }
  });
}

#define INSTANTIATE(T) template class RowHeads<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::attention
