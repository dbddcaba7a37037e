#include "reference/attention/chunk.hpp"
#include "reference/numeric/instantiate.hpp"
#include "reference/operation/shards.hpp"

namespace plumbline::attention {
namespace {

template <class T> class RowBack {
 public:
  RowBack(const Setting<T>& setting, const Run& run, const Cotangents& cotangents)
      : setting_(setting),
        run_(run),
        cotangents_(cotangents),
        widths_(setting),
        rule_(setting.options.lse, setting.sink.given()),
        sink_(read_sink<T>(setting.sink, setting.visibility)) {}

  // A row without keys: all of a counted, finite sink's lse is the sink.
  void without_keys(std::int64_t b, std::int64_t t, Array<T>* sink) const {
    if (sink == nullptr || !cotangents_.lse.given() || setting_.given_lse.given()) return;
    for (std::int64_t h = 0; h < widths_.heads; ++h) {
      const auto i = static_cast<std::size_t>(h);
      if (!rule_.empty_is_sink(sink_[i])) continue;
      sink->values[i] += rule_.pull_back(fetch_one<T>(cotangents_.lse, {b, t, h}));
    }
  }
  void heads(std::int64_t shard, std::int64_t b, std::int64_t t, std::span<const RowKey> keys,
             std::int64_t first, std::int64_t last, std::span<T> query_gradient, Array<T>* sink,
             std::span<Array<T>* const> arrays) const;
  const Widths<T>& widths() const { return widths_; }

 private:
  void summarise(RowHeads<T>& heads, const RowPlace<T>& place, std::int64_t b, std::int64_t t,
                 std::span<const T> cotangent, std::span<const T> mapped_cotangent,
                 std::span<T> delta, std::span<T> lse) const;

  const Setting<T>& setting_;
  const Run& run_;
  const Cotangents& cotangents_;
  const Widths<T> widths_;
  const LseRule<T> rule_;
  const std::vector<T> sink_;
};

// Delta and the cotangent of the natural lse, from what is given, else from a pass over the keys.
template <class T> void RowBack<T>::summarise(RowHeads<T>& heads, const RowPlace<T>& place,
                                              std::int64_t b, std::int64_t t,
                                              std::span<const T> cotangent,
                                              std::span<const T> mapped_cotangent,
                                              std::span<T> delta, std::span<T> lse) const {
  const bool has_output = setting_.given_output.given(), has_lse = setting_.given_lse.given();
  const bool need_output = cotangents_.output.given() && !has_output;
  const auto out = static_cast<std::size_t>(widths_.output),
             value = static_cast<std::size_t>(widths_.value);
  Buffer<T> output(need_output ? delta.size() * value : 0);
  if (need_output || !has_lse)
    heads.attend(output, !rule_.counts_sink());  // its own output, whatever lse is given
  for (std::size_t i = 0; i < delta.size() && has_lse; ++i) {
    const HeadState<T>& head = heads.head(i);
    const GivenLse<T> given =
        read_lse(setting_.given_lse, {b, t, place.first + static_cast<std::int64_t>(i)}, rule_,
                 head.has_sink, head.sink);
    heads.give(i, given.keys, given.all);
  }
  if (has_output && cotangents_.output.given()) {
    output.resize(delta.size() * out);
    fetch_heads<T>(setting_.given_output, b, t, place.first, place.last, output);
  }
  for (std::size_t i = 0; i < delta.size(); ++i) {
    const std::span<const T> o(output);
    if (has_output && cotangents_.output.given())
      delta[i] = dot<T>(cotangent.subspan(i * out, out), o.subspan(i * out, out));
    if (need_output)
      delta[i] = dot<T>(mapped_cotangent.subspan(i * value, value), o.subspan(i * value, value));
    delta[i] = share(Symbol::delta, round_at(Point::delta, delta[i]));
    if (!cotangents_.lse.given() || has_lse) continue;  // a given lse is a constant
    const T natural = heads.head(i).log_sum_exp(rule_.counts_sink());
    if (natural == infinity<T>() || natural == -infinity<T>()) continue;  // a constant
    lse[i] = rule_.pull_back(
        fetch_one<T>(cotangents_.lse, {b, t, place.first + static_cast<std::int64_t>(i)}));
  }
}

template <class T> void RowBack<T>::heads(std::int64_t shard, std::int64_t b, std::int64_t t,
                                          std::span<const RowKey> keys, std::int64_t first,
                                          std::int64_t last, std::span<T> query_gradient,
                                          Array<T>* sink, std::span<Array<T>* const> arrays) const {
  HeadMap<T>* const map = setting_.map;
  const auto count = static_cast<std::size_t>(last - first),
             begin = static_cast<std::size_t>(first);
  const auto width = static_cast<std::size_t>(widths_.query),
             out = static_cast<std::size_t>(widths_.output);
  Buffer<T> query(count * width), cotangent(count * out), delta(count), lse(count), mapped_query,
      mapped_cotangent;
  fetch_heads<T>(setting_.query, b, t, first, last, query);
  if (cotangents_.output.given()) fetch_heads<T>(cotangents_.output, b, t, first, last, cotangent);
  if (map != nullptr) {
    mapped_query = mapped<T>(query, widths_.query, widths_.key, first,
                             [&](std::int64_t h, auto from, auto to) { map->query(h, from, to); });
    mapped_cotangent =
        mapped<T>(cotangent, widths_.output, widths_.value, first,
                  [&](std::int64_t h, auto from, auto to) { map->cotangent(h, from, to); });
  }
  const std::span<const T> q =
      map != nullptr ? std::span<const T>(mapped_query) : std::span<const T>(query);
  const std::span<const T> g =
      map != nullptr ? std::span<const T>(mapped_cotangent) : std::span<const T>(cotangent);
  const RowPlace<T> place{setting_.sources,
                          keys,
                          b,
                          first,
                          last,
                          widths_.heads,
                          widths_.key,
                          widths_.value,
                          run_.schedule.key_block,
                          constant<T>(setting_.options.softmax_scale)};
  RowHeads<T> heads(
      place, q,
      sink_.empty() ? std::span<const T>() : std::span<const T>(sink_).subspan(begin, count));
  summarise(heads, place, b, t, cotangent, g, delta, lse);

  typename RowHeads<T>::Pull pull;
  pull.cotangent = g;
  pull.delta = delta;
  pull.lse = lse;
  pull.lse_counts_sink = rule_.counts_sink();
  pull.arrays = arrays;
  Buffer<T> key_gradient, value_sum;
  if (map == nullptr) {
    pull.query = query_gradient.subspan(begin * width, count * width);
    heads.pull_back(pull);
  } else {
    const auto key = static_cast<std::size_t>(widths_.key),
               value = static_cast<std::size_t>(widths_.value);
    key_gradient.resize(count * key);
    value_sum.resize(count * value);
    pull.query = key_gradient;
    pull.value_sum = value_sum;
    heads.pull_back(pull);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const T> dk(key_gradient), sum(value_sum), given_query(query),
          given_cotangent(cotangent);
      map->pull_back(shard, first + static_cast<std::int64_t>(i),
                     {given_query.subspan(i * width, width), given_cotangent.subspan(i * out, out),
                      dk.subspan(i * key, key), sum.subspan(i * value, value),
                      query_gradient.subspan((begin + i) * width, width)});
    }
  }
  for (std::size_t i = 0; i < count && sink != nullptr; ++i) {
    const HeadState<T>& head = heads.head(i);
    if (!head.has_sink || head.sink == infinity<T>()) continue;
    T d = -delta[i];
    if (rule_.counts_sink()) d += lse[i];
    sink->values[begin + i] += leave(T(head.sink_weight() * d));
  }
}

}  // namespace

template <class T> void backward(const Setting<T>& setting, const Run& run,
                                 const Cotangents& cotangents, const Targets<T>& targets) {
  const Visibility& visibility = setting.visibility;
  const std::int64_t batch = visibility.batch(), rows = visibility.rows();
  const RowBack<T> row(setting, run, cotangents);
  const Widths<T>& widths = row.widths();

  std::vector<Shards<T>> keys;
  keys.reserve(targets.keys.size() + 1);
  for (Array<T>* array : targets.keys) keys.emplace_back(*array, batch * rows);
  if (targets.sink != nullptr) keys.emplace_back(*targets.sink, batch * rows);
  for_each_shard(run, batch * rows, [&](std::int64_t shard, std::int64_t begin, std::int64_t end) {
    std::vector<Array<T>*> arrays;
    for (Shards<T>& each : keys) arrays.push_back(&each[shard]);
    Array<T>* const sink = targets.sink != nullptr ? arrays.back() : nullptr;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t b = i / rows, t = i % rows;
      if (!visibility.real(b, t)) continue;
      const std::vector<RowKey> list = setting.keys(b, t);
      if (list.empty()) {
        row.without_keys(b, t, sink);
        continue;
      }
      const std::span<T> query = targets.query->row({b, t}, widths.heads * widths.query);
      in_chunks(widths.heads, run.schedule.head_chunk, [&](std::int64_t first, std::int64_t last) {
        row.heads(shard, b, t, list, first, last, query, sink, arrays);
      });
    }
  });
  for (Shards<T>& each : keys) each.fold();
}

#define INSTANTIATE(T) \
  template void backward<T>(const Setting<T>&, const Run&, const Cotangents&, const Targets<T>&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::attention
