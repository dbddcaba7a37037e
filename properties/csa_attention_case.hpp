// properties/csa_attention_case.hpp
//
// Random problems of csa_attention with what SPEC says about each: which tokens and blocks a row has, and how often.
// Worked out here from the written rules, sharing nothing with reference/mask or reference/attention.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "reference/csa_attention/csa_attention.hpp"
#include "reference/mla_attention/mla_attention.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::properties {

using support::Flags;
using support::Integers;
using support::Numbers;

struct CsaWish {  // what a property needs; nothing = either
  std::optional<bool> selects, by_index, duplicates, documents, sink;
  bool unreal_rows = true, infinite_sinks = true, causal_only = false, whole = false;
  bool gaps = true;  // positions that skip some, so that a block counts as complete before it is
};

struct CsaCase {
  CsaWish wish;
  std::int64_t B = 1, T = 0, S = 0, N = 0, H = 1, D = 1, m = 1, W = 0, k = 0;
  bool selects = false, by_index = false, causal = true, documents = false,
       grid_of_documents = false;
  std::uint64_t seed = 0;
  std::string duplicates = "error";
  std::vector<std::int64_t> token, segment, position, first;  // [T]; [B S]; [B S]; [N]
  std::int64_t padding = -1;                                  // its segment; -1: none
  Flags real;                                                 // [B T]
  Flags visible;   // [B T N] seen by the row, real or not
  Integers times;  // [B T N]: how often a real row has a block
  Integers index;  // [B T k]
  Numbers sink;    // [H] or empty
  bool counts_sink = false, base_two = false;
  Problem problem;

  std::size_t cell(std::int64_t b, std::int64_t t, std::int64_t j) const {
    return static_cast<std::size_t>((b * T + t) * N + j);
  }
  std::int64_t segment_of(std::int64_t b, std::int64_t s) const {
    return segment[static_cast<std::size_t>(b * S + s)];
  }
  std::int64_t position_of(std::int64_t b, std::int64_t s) const {
    return position[static_cast<std::size_t>(b * S + s)];
  }
  bool is_real(std::int64_t b, std::int64_t t) const {
    return real[static_cast<std::size_t>(b * T + t)] != 0;
  }
  bool in_window(std::int64_t b, std::int64_t t, std::int64_t s) const;  // of a real row
  std::int64_t tokens_of(std::int64_t b, std::int64_t t) const;
  std::int64_t blocks_of(std::int64_t b, std::int64_t t) const;  // each as often as it counts
  bool token_read(std::int64_t b, std::int64_t s) const;         // by some row
  bool block_read(std::int64_t b, std::int64_t j) const;

  bool empty_row() const;
  bool unreal_row() const;
  bool straddling() const;
  bool gap() const;              // an empty slot before a used one
  bool fewer_than_seen() const;  // a row that has some of the blocks it sees, not all
  bool cut_window() const;       // a token within W of a row that another document has
};

CsaCase draw_csa_case(const CsaWish& wish = {});
Json draw_csa_schedule(const CsaCase& attention);
bool ragged(const CsaCase& attention, const Json& schedule);
// Rubbish in every place that no row may read.
Problem poisoned(const CsaCase& attention, double poison);
// Every class that the wish leaves room for.
void count(support::Distribution& d, const CsaCase& attention);

}  // namespace plumbline::properties
