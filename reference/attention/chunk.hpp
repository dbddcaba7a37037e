// reference/attention/chunk.hpp: the heads of a row that are worked on together, as forward and
// backward share them.
#pragma once
#include "reference/attention/attention.hpp"

namespace plumbline::attention {

template <class T> struct Widths {
  std::int64_t heads, query, output, key, value;
  explicit Widths(const Setting<T>& setting)
      : heads(setting.query.size(2)),
        query(setting.query.size(3)),
        output(setting.output_width),
        key(setting.map != nullptr ? setting.map->key_width() : query),
        value(setting.map != nullptr ? setting.map->value_width() : output) {}
};

// Head h's numbers of a row of a [B, T, H, width] tensor, for heads [first, last).
template <class T> void fetch_heads(const StoredTensor& tensor, std::int64_t b, std::int64_t t,
                                    std::int64_t first, std::int64_t last, std::span<T> to) {
  const auto width = static_cast<std::size_t>(tensor.size(3));
  for (std::int64_t h = first; h < last; ++h) {
    fetch<T>(tensor, {b, t, h}, to.subspan(static_cast<std::size_t>(h - first) * width, width));
  }
}

// rows of `from` wide numbers mapped head by head to rows of `to` wide ones.
template <class T, class F> Buffer<T> mapped(std::span<const T> from, std::int64_t from_width,
                                             std::int64_t to_width, std::int64_t first, F f) {
  const auto in = static_cast<std::size_t>(from_width), out = static_cast<std::size_t>(to_width);
  const std::size_t count = in == 0 ? 0 : from.size() / in;
  Buffer<T> to(count * out);
  for (std::size_t i = 0; i < count; ++i) {
    f(first + static_cast<std::int64_t>(i), from.subspan(i * in, in),
      std::span<T>(to).subspan(i * out, out));
  }
  return to;
}

}  // namespace plumbline::attention
