// gradcheck/function.hpp
//
// phi as a function of one input, everything else fixed, and its slopes by differences. One object
// belongs to one thread: it holds its own copy of the input and the decisions that the operation
// took at the point itself.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/numeric/decisions.hpp"
#include "reference/registry/operation.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::differences {

struct Cotangent {  // of one output, element by element
  std::string output;
  std::vector<mp100> values;
};
using Cotangents = std::vector<Cotangent>;

// The cotangents as backward reads them, for outputs of the shapes in `base`.
Cotangents read_cotangents(const Operation& operation, const Problem& problem, const Result& base);
Cotangents reaching(const Operation& operation, const Cotangents& all, const std::string& input);

std::vector<mp100> read_tensor(const StoredTensor& tensor);  // row by row, unchecked
const std::vector<mp100>& exact_of(
    const Value& value);  // Error when the result was not made in mp100
Shape index_of(std::size_t position, const Shape& shape);

struct Displaced {  // a coordinate and how far it moves for a step of 1
  std::size_t at;
  double weight;
};

struct Slope {
  mp100 value{0};
  bool constant = true;    // no output moved in any bit
  bool undefined = false;  // outputs that are NaN on both sides were left out
  std::vector<Decisions::Kink> kinks;
};

class Function {
 public:
  // `problem` asks for the outputs that the cotangents belong to, and for no others on request.
  Function(const Operation& operation, const Problem& problem, const Cotangents& cotangents,
           const std::string& input, bool surrogate);
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  // d phi along a displacement, from the four points at ±h and ±2h, h = 2^step.
  Slope slope(std::span<const Displaced> displaced, int step);
  // An input with something else in that place gives other outputs, or an error.
  bool reads(std::size_t at);
  // Outputs that stand still in every bit leave a slope of at most this, for a step of 2^step.
  mp100 resolution(int step) const;

 private:
  using Outputs = std::vector<std::vector<mp100>>;  // in the order of the cotangents
  Outputs evaluate(Decisions::Mode mode);
  Outputs evaluate_at(std::span<const Displaced> displaced, const mp100& distance, Slope& slope);

  const Operation& operation_;
  const Cotangents& cotangents_;
  bool surrogate_;
  Problem problem_;
  std::vector<mp100> base_;
  Array<mp100> x_;  // problem_ reads the input from here
  Decisions decisions_;
  Outputs outputs_;
};

}  // namespace plumbline::differences
