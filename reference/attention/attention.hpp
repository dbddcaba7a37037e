// reference/attention/attention.hpp
//
// What every attention here does with its rows, forward and backward; an operation says in a
// Setting where keys come from and which of them each row has. Not an operation itself.
// Guarantees: rows that are not real and rows without keys are skipped (output 0, lse a constant,
// but for a counted sink); nothing of size [T, K] is held; sums over rows go through shards, so no
// bit depends on threads.
// given.lse, given.output: in rows that have keys they replace what is computed, also inside the
// backward pass, which then is that of a kernel's own saved tensors; a given lse is a constant, through which no cotangent flows. They
// are not read in other rows.
// Errors: a NaN sink, a NaN in given.lse, an infinite one where the row's is finite (nonfinite
// "error").
#pragma once
#include <functional>

#include "reference/attention/lse.hpp"
#include "reference/attention/row_heads.hpp"
#include "reference/operation/run.hpp"

namespace plumbline::attention {

// What a head brings to the keys instead of its query and takes from them instead of its output:
// the absorbed form of latent attention. Widths are those that meet the keys.
template <class T> class HeadMap {
 public:
  virtual ~HeadMap() = default;
  virtual std::int64_t key_width() const = 0;
  virtual std::int64_t value_width() const = 0;
  virtual void query(std::int64_t head, std::span<const T> query, std::span<T> to) const = 0;
  virtual void output(std::int64_t head, std::span<const T> sum, std::span<T> to) const = 0;
  virtual void cotangent(std::int64_t head, std::span<const T> cotangent,
                         std::span<T> to) const = 0;
  struct Back {
    std::span<const T> query, cotangent;         // as the operation has them
    std::span<const T> key_gradient, value_sum;  // of the mapped query; Σ p v
    std::span<T> query_gradient;                 // taken
  };
  // Also takes the gradient of what the map is made of, in this shard.
  virtual void pull_back(std::int64_t shard, std::int64_t head, const Back& back) = 0;
};

template <class T> struct Setting {
  const Options& options;
  const Visibility& visibility;
  std::vector<Source> sources;
  std::function<std::vector<RowKey>(std::int64_t b, std::int64_t t)> keys;  // of a real row
  StoredTensor query;                                                       // [B, T, H, D]
  std::int64_t output_width;                                                // Dv
  StoredTensor sink, given_output, given_lse, given_max_logit;
  HeadMap<T>* map = nullptr;
};

struct Cotangents {
  StoredTensor output, lse;
  template <class Visitor> void fields(Visitor& v) {
    v.optional("output", output, "B T H Dv", "of the output");
    v.optional("lse", lse, "B T H", "of lse");
  }
};

template <class T> struct Outputs {
  Array<T> output, lse, max_logit;
  template <class Visitor> void fields(Visitor& v) {
    v("output", output, "B T H Dv", "sum of p v");
    v("lse", lse, "B T H", "log-sum-exp of the logits, see the lse options");
    v.on_request("max_logit", max_logit, "B T H",
                 "largest logit of the row, natural, without the sink");
  }
};

template <class T> Outputs<T> forward(const Setting<T>& setting, const Run& run);

template <class T> struct Targets {
  Array<T>* query;
  Array<T>* sink;               // null without a sink
  std::vector<Array<T>*> keys;  // by Part::gradient
};
// Adds to the targets, which have their inputs' shapes.
template <class T> void backward(const Setting<T>& setting, const Run& run,
                                 const Cotangents& cotangents, const Targets<T>& targets);

// The sink's logits, ±inf among them; empty without one.
template <class T> std::vector<T> read_sink(const StoredTensor& sink, const Visibility& visibility);
// given.lse of a row that has keys, natural, over the keys and over keys and sink.
template <class T> struct GivenLse { T keys, all; };
template <class T> GivenLse<T> read_lse(const StoredTensor& given, Place place,
                                        const LseRule<T>& rule, bool has_sink, const T& sink);

}  // namespace plumbline::attention
