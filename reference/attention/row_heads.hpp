// reference/attention/row_heads.hpp
//
// Some heads of one query row over the row's keys: one softmax over the keys and the sink, forward
// and pulled back.
//
//     c[s] = scale · q·k[s]        L = ln(Σ_s exp c[s] + exp sink)        p[s] = exp(c[s] − L)
//     output = Σ_s p[s] v[s]       dc[s] = p[s] (g·v[s] − g·output) + l·w[s]
//
// with g = cot.output, l = cot.lse in natural units, and w[s] = p[s], or exp(c[s] − lse) where lse
// does not count the sink. key_block 0: the logits of all keys are
// held, the maximum is found first (two passes), and the backward pass uses the logits again.
// key_block n: keys come n at a time under a running maximum that includes the sink, no array over
// keys is held, and the backward pass computes logits again.
// Guarantees: a key that is not in the list is not read. A −inf sink is no sink; a +inf one takes
// all the mass.
// Source: online softmax, Milakov and Gimelshein 2018; backward by recomputation, Dao et al. 2022,
// section 3.1.
#pragma once
#include "reference/attention/source.hpp"

namespace plumbline::attention {

// What a head knows of its row after a pass over the keys.
template <class T> struct HeadState {
  LogSum<T> keys, all;            // over the keys; over the keys and the sink
  T given_keys{0}, given_all{0};  // their logarithms where lse is given
  T sink{0}, max_logit{0};
  bool given = false, has_sink = false;
  bool unbounded = false;  // online: something infinite has taken all the mass

  T weight(const T& c) const { return given ? T(exp(T(c - given_all))) : all.weight(c); }
  // The same on the way back, from logits computed again and the logarithm as it was kept.
  T weight_again(const T& c) const {
    return given ? T(exp(T(c - given_all))) : all.weight_again(c);
  }
  T weight_among_keys(const T& c) const {
    return given ? T(exp(T(c - given_keys))) : keys.weight_again(c);
  }
  // p of the sink; 0 for an infinite one, of which nothing depends on its value.
  T sink_weight() const {
    return has_sink && sink < infinity<T>() ? weight_again(sink) : is_nan(sink) ? sink : T(0);
  }
  T log_sum_exp(bool with_sink) const {
    if (given) return with_sink ? given_all : given_keys;
    return with_sink ? all.log() : keys.log();
  }
};

template <class T> struct RowPlace {
  std::span<const Source> sources;
  std::span<const RowKey> keys;        // not empty
  std::int64_t b, first, last, heads;  // heads [first, last) of `heads`
  std::int64_t key_width, value_width, key_block;
  T scale;
};

template <class T> class RowHeads {
 public:
  // query [heads, key_width], sink one per head or empty.
  RowHeads(const RowPlace<T>& place, std::span<const T> query, std::span<const T> sink);

  // lse as given, natural: over the keys, and over keys and sink. Before attend.
  void give(std::size_t head, const T& keys, const T& all);
  // The normalisers (unless given) and, where output is not empty, output [heads, value_width].
  // among_keys: the sum without the sink is wanted although there is a sink.
  void attend(std::span<T> output, bool among_keys);
  const HeadState<T>& head(std::size_t i) const { return heads_[i]; }

  struct Pull {
    std::span<const T> cotangent;  // [heads, value_width]
    std::span<const T> delta;      // [heads] cot.output·output
    std::span<const T> lse;        // [heads] cot.lse, natural; 0 where lse is a constant
    bool lse_counts_sink = false;
    std::span<T> query;                 // [heads, key_width] takes the gradient of the query
    std::span<T> value_sum;             // [heads, value_width] takes Σ p v; may be empty
    std::span<Array<T>* const> arrays;  // by Part::gradient, take the gradients of keys and values
  };
  void pull_back(const Pull& pull);

 private:
  template <class F> void each_block(F f);
  void find_logits(std::size_t first, std::size_t last);
  void normalise(std::size_t i, std::span<const T> c);
  void add_values(std::size_t first, std::size_t last, std::span<T> output);
  T online_weight(HeadState<T>& head, const T& c, std::span<T> output) const;
  std::span<const T> logits(std::size_t i, std::size_t count) const {
    return std::span<const T>(logits_).subspan(i * count, count);
  }

  const RowPlace<T>& place_;
  std::span<const T> query_;
  Buffer<HeadState<T>> heads_;
  Buffer<T> logits_;  // [heads, keys of a block]
  RowReader<T> key_, value_;
  bool kept_ = false, online_ = false, among_keys_ = false;
};

// Every element of the array a part belongs to, from where the part's row begins.
template <class T> T* gradient_of(const Part& part, std::span<Array<T>* const> arrays,
                                  std::int64_t b, std::int64_t key, std::int64_t head,
                                  std::int64_t heads) {
  if (part.gradient < 0) return nullptr;
  return arrays[static_cast<std::size_t>(part.gradient)]->values.data() +
         part.offset(b, key, head, heads);
}

}  // namespace plumbline::attention
