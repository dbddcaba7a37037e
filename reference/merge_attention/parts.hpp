// reference/merge_attention/parts.hpp: what one head of one row makes of its parts.
#pragma once
#include "reference/error.hpp"
#include "reference/merge_attention/merge_attention.hpp"

namespace plumbline::merge_attention {

// Sizes, conventions and the sink, before the first row.
template <class T> struct Merge {
  Merge(const Inputs& inputs, const Options& options, Sizes& sizes)
      : in(inputs),
        rule(options, in.sink.given()),
        empty_is_plus(options.empty == attention::EmptyLse::plus_infinity) {
    if (options.empty == attention::EmptyLse::zero) {
      throw Error("option empty_lse", "0",
                  "\"-inf\" or \"+inf\": a part without keys must be told from lse = 0");
    }
    Inputs named = in;
    sizes.unify_all(named);
    parts = sizes["P"], rows = sizes["B"] * sizes["T"], length = sizes["T"], heads = sizes["H"],
    width = sizes["D"];
    for (std::int64_t h = 0; in.sink.given() && h < heads; ++h) {
      const T value = element<T>(in.sink, {h});
      sink.push_back(is_nan(value) && rows > 0 ? fetch_one<T>(in.sink, {h})
                                               : value);  // ±inf is a value, NaN an error
    }
  }
  T sink_of(std::int64_t head) const {
    return sink.empty() ? -infinity<T>() : sink[static_cast<std::size_t>(head)];
  }

  const Inputs& in;
  attention::LseRule<T> rule;
  bool empty_is_plus;  // the lse of a part without keys
  std::int64_t parts, rows, length, heads, width;
  std::vector<T> sink;
};

// The parts of head h of row (b, t) that have keys, with their natural lse.
template <class T> struct Live {
  Live(const Merge<T>& merge, std::int64_t b, std::int64_t t, std::int64_t h)
      : sink(merge.sink_of(h)) {
    for (std::int64_t p = 0; p < merge.parts; ++p) {
      const T stored = element<T>(merge.in.lse, {p, b, t, h});
      const bool plus = stored == infinity<T>(), minus = stored == -infinity<T>();
      if (merge.empty_is_plus ? plus : minus) continue;
      if ((plus || minus) && merge.in.lse.nonfinite == NonFinite::error) {
        const std::int64_t place[] = {p, b, t, h};
        throw Error(merge.in.lse.name + to_string(Index(place)), plus ? "inf" : "-inf",
                    std::string("a finite number, or ") + (plus ? "-inf" : "inf") +
                        " for a part without keys (option empty_lse)");
      }
      part.push_back(p);
      lse.push_back(merge.rule.natural(fetch_one<T>(merge.in.lse, {p, b, t, h})));
    }
    keys.add_block(lse);
    all.add(sink);
    all.add(keys);
  }
  T log_sum_exp(bool with_sink) const { return with_sink ? all.log() : keys.log(); }

  T sink;
  std::vector<std::int64_t> part;
  std::vector<T> lse;
  LogSum<T> keys, all;  // over the parts; over the parts and the sink
};

}  // namespace plumbline::merge_attention
