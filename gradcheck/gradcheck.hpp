// gradcheck/gradcheck.hpp
//
// The hand-written gradient of an operation against differences of its own values, both in mp100.
// Guarantees: knows operations only through the registry; every differentiable input of the problem
// is looked at; no step and no tolerance is chosen by the user. Agreement is told in decimal digits
// relative to the tensor's largest gradient; the method leaves more than 70 on well-scaled
// problems, so 30 are expected everywhere.
//
// What is differentiated: phi(x) = Σ ⟨cot, output⟩ over the outputs whose gradient reaches the
// input, with the cotangents as backward reads them (none at all: 1 for `loss`). Only differences
// of outputs enter, and an output that does not move is skipped before its cotangent is looked at:
// hidden places may hold NaN cotangents.
//
// Kinks: the decisions of the point itself (ReLU signs, clamps, selections) are recorded and
// followed at the displaced points, so the difference belongs to the branch that the gradient
// belongs to. Whatever would have decided otherwise within the step is named, and its coordinate is
// checked all the same.
//
// Operations whose gradient belongs to a surrogate are held against the surrogate; the distance
// from the derivative of the value is reported. Errors: those of the operation; an operation
// without a gradient.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/registry/operation.hpp"

namespace plumbline {

inline constexpr double gradcheck_digits = 30;  // expected of every coordinate
inline constexpr double gradcheck_share = 95;   // per cent of coordinates that must be checked

struct GradcheckSettings {
  std::int64_t max_coordinates =
      4000;  // of an input; larger ones are checked along random directions
  std::int64_t directions = 4;
  std::uint64_t seed = 0;  // of the directions
  int threads = 2;         // the report does not depend on it
  std::size_t named = 5;   // wrong elements and kinks told by name
};

struct GradcheckElement {
  Shape index;
  std::string gradient, difference;  // 40 decimals
  double digits = 0;  // in which they agree, relative to the tensor's largest gradient
  std::string why;    // of a wrong element
};

struct GradcheckKink {
  Shape index;             // the coordinate that was displaced; empty along a direction
  std::int64_t direction;  // -1 for a coordinate
  std::string what;        // the decision
  std::int64_t b, t;       // the row that takes it
};

struct GradcheckInput {
  std::string name;
  Shape shape;
  std::int64_t coordinates = 0, checked = 0;
  std::int64_t not_finite = 0;  // NaN or infinite inputs: checked by a gradient of exactly 0
  std::int64_t at_resolution =
      0;  // agree only as far as differences can tell: values too flat for 30 digits
  std::int64_t directions = 0;  // 0: every coordinate on its own
  int step = 0;                 // displacements of ±2^step and ±2^(step + 1)
  double digits = 0;            // of the worst element or direction; 100 where nothing differs
  std::optional<GradcheckElement> worst;
  std::int64_t wrong_elements = 0;  // at least, where directions were taken
  std::vector<GradcheckElement> wrong;
  std::int64_t kinks = 0;
  std::vector<GradcheckKink> first_kinks;
  std::optional<double>
      surrogate_distance;  // max |gradient − derivative of the value| over the larger maximum
  std::string failure;     // of the gradient as a whole: missing, of another shape
  double share() const;    // of coordinates checked, in per cent
  bool pass() const;
};

struct GradcheckReport {
  std::string op;
  std::vector<std::string> cotangents;  // the outputs that phi is made of
  bool surrogate = false;
  std::uint64_t seed = 0;
  std::vector<GradcheckInput> inputs;
  std::vector<std::string> unexpected;  // gradients of what is no differentiable input
  bool pass() const;
};

GradcheckReport gradcheck(const Operation& operation, const Problem& problem,
                          const GradcheckSettings& settings = {});

Json to_json(const GradcheckReport& report);
std::vector<std::vector<std::string>> table_of(
    const GradcheckReport& report);  // a row per input, the header first
std::string notes_of(
    const GradcheckReport& report);  // worst and wrong elements, kinks, distances; whole lines

}  // namespace plumbline
