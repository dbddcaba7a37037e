// verdict/contract_fields.hpp: the parts of a contract by the names they have in JSON, for option visitors. Each
// part is a copy whose fields() names it; docs/contracts.md is printed from the same sentences.
#pragma once
#include "verdict/contract.hpp"

namespace plumbline {

#define PLUMBLINE_NAMES(TYPE, ...)                             \
  inline std::span<const std::string_view> names_of(TYPE) {    \
    static constexpr std::string_view names[] = {__VA_ARGS__}; \
    return names;                                              \
  }
PLUMBLINE_NAMES(Algebra::Softmax, "two_pass", "online")
PLUMBLINE_NAMES(Algebra::Delta, "from_output", "from_probabilities")
PLUMBLINE_NAMES(Algebra::Divergence, "from_logs", "from_probabilities")
PLUMBLINE_NAMES(Algebra::Normaliser, "unrounded", "stored")
PLUMBLINE_NAMES(Algebra::Cast, "once_per_key", "per_value_chunk")
PLUMBLINE_NAMES(Algebra::Scores, "recomputed", "stored")
PLUMBLINE_NAMES(SelectionRule::Order, "any", "best_first")
PLUMBLINE_NAMES(SelectionRule::Tie, "any", "lowest_index", "highest_index")
#undef PLUMBLINE_NAMES

struct AccumulatorFields {
  Accumulator a;
  template <class Visitor> void fields(Visitor& v) {
    v("format", a.format, "numbers that sums are kept in");
    v("rounding", a.rounding, "of an addition: to nearest, or the rest cut off");
    v("block", a.block, "products added at once, aligned to the largest; 0: one at a time");
    v("fraction_bits", a.fraction_bits, "kept of each product in such a block");
    v("promotion", a.promotion, "products after which a sum moves on to f32; 0: never");
  }
};

struct PointFields {
  std::array<std::optional<Format>, points> at;
  template <class Visitor> void fields(Visitor& v) {
    for (std::size_t i = 0; i < points; ++i)
      v(names_of(Point{})[i], at[i], "format this intermediate is stored in; null: not stored");
  }
};

struct AlgebraFields {
  Algebra a;
  template <class Visitor> void fields(Visitor& v) {
    v("softmax", a.softmax, "the maximum first and then the sums, or both in one pass");
    v("tile", a.tile, "keys between two rescalings of an online softmax");
    v("delta", a.delta, "sum of cotangent.output, or of probabilities times their gradients");
    v("kl", a.divergence, "of the difference of logarithms, or of logarithms of probabilities");
    v("normaliser", a.normaliser, "sums of probabilities before or after they are rounded");
    v("cast", a.cast, "of probabilities: one for all channels, or again per chunk of the value");
    v("scores", a.scores, "of the backward pass: computed again, or those of the forward");
  }
};

struct UlpFields {
  Ulp u;
  template <class Visitor> void fields(Visitor& v) {
    v("exp", u.exp, "largest error of exp");
    v("exp2", u.exp2, "of exp2, where softmax is made of it");
    v("log", u.log, "of the logarithm");
    v("rsqrt", u.rsqrt, "of the reciprocal square root");
    v("sin", u.sin, "of sin");
    v("cos", u.cos, "of cos");
    v("division", u.division, "of a quotient; 0.5: correctly rounded");
  }
};

struct SelectionFields {
  SelectionRule s;
  template <class Visitor> void fields(Visitor& v) {
    v("order", s.order, "of the indices in a row: none, or the best first");
    v("tie", s.tie, "which of exactly equal scores is taken; holds where scores carry no error");
  }
};

class ContractFields {
 public:
  explicit ContractFields(KernelContract& contract)
      : c_(contract),
        accumulator_{contract.accumulator},
        points_{contract.rounding_points},
        algebra_{contract.algebra},
        ulp_{contract.ulp},
        selection_{contract.selection} {}
  template <class Visitor> void fields(Visitor& v) {
    v("input", c_.input, "numbers that the kernel reads");
    v("accumulator", accumulator_, "how it adds products up");
    v("storage", c_.storage, "numbers it keeps between its parts");
    v("output", c_.output, "numbers it writes");
    v("rounding_points", points_, "intermediates it stores in fewer bits");
    v("algebra", algebra_, "which of several equal formulas it computes");
    v("ulp", ulp_, "how good its elementary functions are");
    v("flush_to_zero", c_.flush_to_zero, "numbers below the normal ones become 0");
    v("selection", selection_, "what is promised of indices beyond the set");
  }
  void write_back() const {
    c_.accumulator = accumulator_.a;
    c_.rounding_points = points_.at;
    c_.algebra = algebra_.a;
    c_.ulp = ulp_.u;
    c_.selection = selection_.s;
  }

 private:
  KernelContract& c_;
  AccumulatorFields accumulator_;
  PointFields points_;
  AlgebraFields algebra_;
  UlpFields ulp_;
  SelectionFields selection_;
};

}  // namespace plumbline
