// reference/topk/topk.hpp
//
// The k best visible keys of every row, with its contract in three separate parts: which set (the tie rule), which
// order (best first), what becomes of NaN; docs/ops/topk.md.
// Guarantees: indices are unique and visible, −1 follows the visible ones, and the selection is the same on every
// run. +inf is the best score, −inf a visible one, NaN comes after it (nan last) or is an error; −0 equals 0.
// Source: DeepSeek-V3.2 report, equation 2.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/mask/mask.hpp"
#include "reference/operation/run.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

enum class Tie { lowest_index, threshold };
inline std::span<const std::string_view> names_of(Tie) {
  static constexpr std::string_view names[] = {"lowest_index", "threshold"};
  return names;
}

// k, at least 0; and a number of slots that can be held. `where` names the option in errors.
std::int64_t checked_k(const std::optional<std::int64_t>& k, const std::string& where = "option k");
void check_slots(std::int64_t k, std::int64_t rows, const std::string& where = "option k");

// Among keys (ascending) with their scores: `order` the best min(k, all) first, ties by lower key; `selected` those,
// or under threshold every key whose score is at least the k-th. Takes part in Decisions.
struct Selection {
  std::vector<std::int64_t> order, selected;
};
template <class T> Selection select_best(std::span<const std::int64_t> keys,
                                         std::span<const T> scores, std::int64_t k, Tie tie);

namespace topk {

enum class Keys { tokens, blocks };
inline std::span<const std::string_view> names_of(Keys) {
  static constexpr std::string_view names[] = {"tokens", "blocks"};
  return names;
}
enum class Nan { last, error };
inline std::span<const std::string_view> names_of(Nan) {
  static constexpr std::string_view names[] = {"last", "error"};
  return names;
}

struct Options {
  std::optional<std::int64_t> k;
  Keys keys = Keys::tokens;
  Tie tie = Tie::lowest_index;
  Nan nan = Nan::last;
  std::optional<std::int64_t> m, tokens;
  Grid grid = Grid::physical;
  MaskOptions mask;

  template <class Visitor> void fields(Visitor& v) {
    v("k", k, "keys to select; required");
    v("keys", keys, "what the scores range over");
    v("tie", tie, "equal scores: exactly k, lower index first; or every score >= the k-th");
    v("nan", nan, "a NaN score of a visible key: after all numbers, or an error");
    v("m", m, "tokens per block; required for blocks");
    v("grid", grid, "blocks are cut from token 0, or inside each document");
    v("mask", mask, "who sees whom");
    v("S", tokens, "number of tokens, where no tensor tells");
  }
};

struct Inputs {
  StoredTensor scores;
  MaskInputs mask;
  template <class Visitor> void fields(Visitor& v) {
    v.required("scores", scores, "B T K", "scores; +-inf allowed");
    mask.fields(v, "K");
  }
};
struct Cotangents {
  template <class Visitor> void fields(Visitor&) {}
};
template <class T> struct Outputs {
  Array<std::int32_t> indices;
  Array<std::uint8_t> selected;
  template <class Visitor> void fields(Visitor& v) {
    v("indices", indices, "B T k", "keys, best first, -1 after the visible ones");
    v("selected", selected, "B T K", "the selected keys as a set");
  }
};
template <class T> struct Gradients {
  template <class Visitor> void fields(Visitor&) {}
};

struct Op {
  using Options = topk::Options;
  using Inputs = topk::Inputs;
  using Cotangents = topk::Cotangents;
  template <class T> using Outputs = topk::Outputs<T>;
  template <class T> using Gradients = topk::Gradients<T>;
  static constexpr std::string_view name = "topk";
  static constexpr std::string_view summary = "the k best visible keys of every row";
  static constexpr std::string_view formula =
      "selected = the min(k, visible) keys with the largest scores";
  static constexpr std::span<const std::string_view> honours = {};
  static MaskView mask_view(const Inputs&, const Options&);
  template <class T> static Outputs<T> forward(const Inputs&, const Options&, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&) {
    return {};
  }
};

}  // namespace topk
}  // namespace plumbline
