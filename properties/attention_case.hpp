// properties/attention_case.hpp
//
// Random problems of mla_attention with what SPEC says about each: which keys a row sees, which it
// attends to and how often. Worked out here from the written rules, sharing nothing with
// reference/mask or reference/attention.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reference/merge_attention/merge_attention.hpp"
#include "reference/mla_attention/mla_attention.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::properties {

using support::Contents;
using support::Flags;
using support::Integers;
using support::Numbers;

struct AttentionWish {  // what a property needs; nothing = either
  std::optional<bool> latent, selects, by_index, duplicates;
  bool unreal_rows = true, infinite_sinks = true, infinite_lse = true;
};

struct AttentionCase {
  bool latent = false, selects = false, by_index = false, bias = false, has_value = true,
       causal = true;
  bool documents = false;
  std::int64_t B = 1, T = 0, S = 0, H = 1, Hk = 1, D = 1, Dv = 1, rank = 1, dn = 1, dr = 1, k = 0;
  std::uint64_t seed = 0;
  std::string duplicates = "error";
  std::vector<std::int64_t> token, segment;  // [T]; [B S]
  Flags real, visible;                       // [B T]; [B T S]
  Integers times;                            // [B T S]: how often a real row attends to a key
  Integers index;                            // [B T k]
  Numbers sink;                              // [H] or empty
  double ln_base = 1;                        // only whether it is 1 counts: else the base is 2
  bool counts_sink = false;
  std::optional<std::string> empty_lse;
  Problem problem;

  std::size_t cell(std::int64_t b, std::int64_t t, std::int64_t s) const {
    return static_cast<std::size_t>((b * T + t) * S + s);
  }
  bool is_real(std::int64_t b, std::int64_t t) const {
    return real[static_cast<std::size_t>(b * T + t)] != 0;
  }
  std::int64_t keys(std::int64_t b,
                    std::int64_t t) const;  // attended to, each counted as often as it counts
  std::int64_t seen(std::int64_t b, std::int64_t t) const;
  bool attended(std::int64_t b, std::int64_t s) const;  // by some row

  bool empty_row() const;
  bool fewer_than_seen() const;
  bool unreal_row() const;
  bool gap() const;  // -1 at the head, or between keys
  bool named_twice() const;
};

AttentionCase draw_attention_case(const AttentionWish& wish = {});
Json draw_attention_schedule(const AttentionCase& attention);
bool ragged(const AttentionCase& attention, const Json& schedule);

// Rubbish in every place that no row may read.
Problem poisoned(const AttentionCase& attention, double poison);

// The inputs that have gradients.
std::vector<std::string> differentiable(const AttentionCase& attention);

}  // namespace plumbline::properties
