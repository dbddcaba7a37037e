// reference/attention/options.hpp
//
// The options that every attention here shares, described once. docs/ops/mla_attention.md explains
// each of them and says which framework takes which value.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "reference/mask/mask.hpp"

namespace plumbline::attention {

enum class LseBase { e, two };
enum class EmptyLse { minus_infinity, plus_infinity, zero };
enum class Duplicates { error, set, multiset };

inline std::span<const std::string_view> names_of(LseBase) {
  static constexpr std::string_view names[] = {"e", "2"};
  return names;
}
inline std::span<const std::string_view> names_of(EmptyLse) {
  static constexpr std::string_view names[] = {"-inf", "+inf", "0"};
  return names;
}
inline std::span<const std::string_view> names_of(Duplicates) {
  static constexpr std::string_view names[] = {"error", "set", "multiset"};
  return names;
}

// How a log-sum-exp is reported.
struct LseOptions {
  LseBase base = LseBase::e;
  bool includes_sink = false;
  std::optional<EmptyLse> empty;  // absent: -inf, or the sink where it is counted

  template <class Visitor> void fields(Visitor& v) {
    v("lse_base", base, "base of the logarithm in lse");
    v("lse_includes_sink", includes_sink, "the sink is a term of lse");
    v("empty_lse", empty,
      "lse of a row without keys, as it stands; default -inf, with a counted sink the sink");
  }
};

struct Options {
  double softmax_scale = 1;
  LseOptions lse;
  bool strict_selection = false;
  Duplicates duplicates = Duplicates::error;
  MaskOptions mask;
  std::optional<std::int64_t> tokens;  // option S

  template <class Visitor> void fields(Visitor& v) {
    v("softmax_scale", softmax_scale, "factor of the logits; 1: queries arrive scaled");
    lse.fields(v);
    v("strict_selection", strict_selection,
      "selecting a key that the row does not see is an error");
    v("duplicates", duplicates,
      "a key named twice: an error, one key, or a key of twice the weight");
    v("mask", mask, "who sees whom");
    v("S", tokens, "number of tokens, where no tensor tells");
  }
};

}  // namespace plumbline::attention
