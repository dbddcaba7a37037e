#include "reference/attention/chunk.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::attention {
namespace {

template <class T> struct Row {
  const Setting<T>& setting;
  const Run& run;
  const Widths<T> widths;
  const LseRule<T> rule;
  const std::vector<T> sink;
  Outputs<T>& out;

  void attend(std::int64_t b, std::int64_t t, std::span<const RowKey> keys, std::int64_t first,
              std::int64_t last) const;
  void report_lse(std::int64_t b, std::int64_t t, std::int64_t h, const HeadState<T>& head) const;
};

template <class T> void Row<T>::report_lse(std::int64_t b, std::int64_t t, std::int64_t h,
                                           const HeadState<T>& head) const {
  if (setting.given_lse.given()) {
    read_lse(setting.given_lse, {b, t, h}, rule, head.has_sink, head.sink);  // checked
    out.lse({b, t, h}) = element<T>(setting.given_lse, {b, t, h});
  } else {
    out.lse({b, t, h}) = leave(rule.reported(head.log_sum_exp(rule.counts_sink())));
  }
  if (!out.max_logit.given()) return;
  const StoredTensor& given = setting.given_max_logit;
  out.max_logit({b, t, h}) = given.given() ? fetch_one<T>(given, {b, t, h}) : leave(head.max_logit);
}

template <class T> void Row<T>::attend(std::int64_t b, std::int64_t t, std::span<const RowKey> keys,
                                       std::int64_t first, std::int64_t last) const {
  const auto count = static_cast<std::size_t>(last - first),
             begin = static_cast<std::size_t>(first);
  const std::span<T> output = out.output.row({b, t}, widths.heads * widths.output)
                                  .subspan(begin * static_cast<std::size_t>(widths.output),
                                           count * static_cast<std::size_t>(widths.output));
  Buffer<T> query(count * static_cast<std::size_t>(widths.query));
  fetch_heads<T>(setting.query, b, t, first, last, query);
  if (setting.map != nullptr) {
    query = mapped<T>(query, widths.query, widths.key, first,
                      [&](std::int64_t h, auto from, auto to) { setting.map->query(h, from, to); });
  }
  const RowPlace<T> place{setting.sources,
                          keys,
                          b,
                          first,
                          last,
                          widths.heads,
                          widths.key,
                          widths.value,
                          run.schedule.key_block,
                          constant<T>(setting.options.softmax_scale)};
  RowHeads<T> heads(
      place, query,
      sink.empty() ? std::span<const T>() : std::span<const T>(sink).subspan(begin, count));
  const bool among_keys = !rule.counts_sink();
  if (setting.given_output.given()) {
    fetch_heads<T>(setting.given_output, b, t, first, last, output);
    if (!setting.given_lse.given() || out.max_logit.given()) heads.attend({}, among_keys);
  } else if (setting.map == nullptr) {
    heads.attend(output, among_keys);
  } else {
    Buffer<T> sum(count * static_cast<std::size_t>(widths.value));
    heads.attend(sum, among_keys);
    for (std::size_t i = 0; i < count; ++i) {
      const auto in = static_cast<std::size_t>(widths.value),
                 to = static_cast<std::size_t>(widths.output);
      setting.map->output(first + static_cast<std::int64_t>(i),
                          std::span<const T>(sum).subspan(i * in, in), output.subspan(i * to, to));
    }
  }
  for (T& x : output) x = leave(x);
  for (std::size_t i = 0; i < count; ++i)
    report_lse(b, t, first + static_cast<std::int64_t>(i), heads.head(i));
}

}  // namespace

template <class T> Outputs<T> forward(const Setting<T>& setting, const Run& run) {
  const Visibility& visibility = setting.visibility;
  const std::int64_t batch = visibility.batch(), rows = visibility.rows();
  const Widths<T> widths(setting);
  Outputs<T> out;
  out.output = Array<T>({batch, rows, widths.heads, widths.output});
  out.lse = Array<T>({batch, rows, widths.heads});
  if (run.wants("max_logit")) out.max_logit = Array<T>({batch, rows, widths.heads}, -infinity<T>());
  const Row<T> row{setting,
                   run,
                   widths,
                   LseRule<T>(setting.options.lse, setting.sink.given()),
                   read_sink<T>(setting.sink, visibility),
                   out};
  for_each_row(run, batch * rows, [&](std::int64_t i) {
    const std::int64_t b = i / rows, t = i % rows;
    const std::vector<RowKey> keys =
        visibility.real(b, t) ? setting.keys(b, t) : std::vector<RowKey>();
    for (std::int64_t h = 0; h < widths.heads && keys.empty(); ++h) {
      out.lse({b, t, h}) =
          row.rule.empty(row.sink.empty() ? T(0) : row.sink[static_cast<std::size_t>(h)]);
    }
    if (keys.empty()) return;
    in_chunks(widths.heads, run.schedule.head_chunk,
              [&](std::int64_t first, std::int64_t last) { row.attend(b, t, keys, first, last); });
  });
  return out;
}

#define INSTANTIATE(T) template Outputs<T> forward<T>(const Setting<T>&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::attention
