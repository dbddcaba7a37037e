#include "gradcheck/function.hpp"

#include <algorithm>
#include <limits>

#include "reference/error.hpp"

namespace plumbline::differences {

Shape index_of(std::size_t position, const Shape& shape) {
  Shape index(shape.size(), 0);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(shape[axis]);
    index[axis] = static_cast<std::int64_t>(position % size);
    position /= size;
  }
  return index;
}

namespace {

std::vector<mp100> read_as(const StoredTensor& tensor, const Shape& shape) {
  std::vector<mp100> values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = Fetch<mp100>::element(tensor, Index(index_of(i, shape)));
  return values;
}

// What one output adds to a difference of phi: a sum over the elements that moved.
mp100 pulled(const Cotangent& cotangent, const std::vector<mp100>& plus,
             const std::vector<mp100>& minus, Slope& slope) {
  mp100 total(0);
  for (std::size_t i = 0; i < plus.size(); ++i) {
    if (plus[i] == minus[i]) continue;  // hidden, or not touched: the cotangent may hold anything
    if (is_nan(plus[i]) &&
        is_nan(minus[i])) {  // perhaps another row's, perhaps what this one reads
      slope.undefined = true;
      continue;
    }
    slope.constant = false;
    total += cotangent.values[i] * (plus[i] - minus[i]);
  }
  return total;
}

bool same(const mp100& a, const mp100& b) { return a == b || (is_nan(a) && is_nan(b)); }

// The recording of a Function takes the place of the thread's own for the length of one evaluation.
class Turn {
 public:
  Turn(Decisions& mine, Decisions::Mode mode) : mine_(mine) {
    std::swap(this_decisions(), mine_);
    if (mode == Decisions::Mode::record) this_decisions().record();
    if (mode == Decisions::Mode::replay) this_decisions().replay();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    this_decisions().stop();
    std::swap(this_decisions(), mine_);
  }

 private:
  Decisions& mine_;
};

}  // namespace

std::vector<mp100> read_tensor(const StoredTensor& tensor) { return read_as(tensor, tensor.shape); }

const std::vector<mp100>& exact_of(const Value& value) {
  if (value.kind != Kind::real || !value.exact) {
    throw Error(value.name, "no values in mp100", "a real result of an evaluation in mp100");
  }
  return *static_cast<const std::vector<mp100>*>(value.exact.get());
}

Cotangents read_cotangents(const Operation& operation, const Problem& problem, const Result& base) {
  Cotangents all;
  for (const TensorInfo& info : operation.cotangents) {
    const auto found = problem.cot.find(info.name);
    const bool assumed = problem.cot.empty() && info.name == "loss";
    if (found == problem.cot.end() && !assumed) continue;
    const Value* output = base.find(info.name);
    if (output == nullptr)
      throw Error("out." + info.name, "nothing",
                  "the output that cot." + info.name + " belongs to");
    all.push_back({info.name, assumed ? std::vector<mp100>(exact_of(*output).size(), mp100(1))
                                      : read_as(found->second, output->shape)});
  }
  return all;
}

Cotangents reaching(const Operation& operation, const Cotangents& all, const std::string& input) {
  Cotangents some;
  for (const Cotangent& cotangent : all) {
    if (operation.reaches(cotangent.output, input)) some.push_back(cotangent);
  }
  return some;
}

Function::Function(const Operation& operation, const Problem& problem, const Cotangents& cotangents,
                   const std::string& input, bool surrogate)
    : operation_(operation),
      cotangents_(cotangents),
      surrogate_(surrogate),
      problem_(problem),
      base_(read_tensor(problem.in.at(input))),
      x_(problem.in.at(input).shape) {
  // A working tensor holds any displacement exactly, whatever the input was stored as.
  x_.values = base_;
  problem_.in[input] = view(x_, problem.in.at(input).name);
  outputs_ = evaluate(Decisions::Mode::record);
}

Function::Outputs Function::evaluate(Decisions::Mode mode) {
  Evaluation how;
  how.precision = Precision::mp100;
  how.surrogate = surrogate_;
  const Turn turn(decisions_, mode);
  const Result result = operation_.evaluate(problem_, how);
  Outputs outputs;
  for (const Cotangent& cotangent : cotangents_) {
    const Value* value = result.find(cotangent.output);
    if (value == nullptr || exact_of(*value).size() != cotangent.values.size()) {
      throw Error("out." + cotangent.output, "another shape near the point", "that of the point");
    }
    outputs.push_back(exact_of(*value));
  }
  return outputs;
}

Function::Outputs Function::evaluate_at(std::span<const Displaced> displaced, const mp100& distance,
                                        Slope& slope) {
  for (const Displaced& each : displaced)
    x_.values[each.at] = base_[each.at] + distance * each.weight;
  Outputs outputs = evaluate(Decisions::Mode::replay);
  for (const Displaced& each : displaced) x_.values[each.at] = base_[each.at];
  for (const Decisions::Kink& kink : decisions_.kinks()) {
    const auto known = [&](const Decisions::Kink& other) {
      return other.what == kink.what && other.b == kink.b && other.t == kink.t;
    };
    if (std::none_of(slope.kinks.begin(), slope.kinks.end(), known)) slope.kinks.push_back(kink);
  }
  return outputs;
}

// D(h) = (phi(x+h) − phi(x−h))/2h = phi' + h²·phi'''/6 + h⁴·phi⁽⁵⁾/120 + …, and (4·D(h) − D(2h))/3
// is free of the h² term: phi' − h⁴·phi⁽⁵⁾/30 + O(h⁶).
Slope Function::slope(std::span<const Displaced> displaced, int step) {
  Slope result;
  const mp100 h = ldexp(mp100(1), step);
  const auto difference = [&](const mp100& distance) {
    const Outputs plus = evaluate_at(displaced, distance, result);
    const Outputs minus = evaluate_at(displaced, -distance, result);
    mp100 total(0);
    for (std::size_t i = 0; i < plus.size(); ++i)
      total += pulled(cotangents_[i], plus[i], minus[i], result);
    return mp100(total / (2 * distance));
  };
  const mp100 near = difference(h), far = difference(2 * h);
  result.value = (4 * near - far) / 3;
  return result;
}

bool Function::reads(std::size_t at) {
  const auto changes = [&](const mp100& other) {
    x_.values[at] = other;
    bool read = true;
    try {
      const Outputs outputs = evaluate(Decisions::Mode::off);
      read = false;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        read = read || !std::equal(outputs[i].begin(), outputs[i].end(), outputs_[i].begin(), same);
      }
    } catch (const Error&) {  // NaN is refused where it is read
    }
    x_.values[at] = base_[at];
    return read;
  };
  return changes(is_nan(base_[at]) ? mp100(0) : not_a_number<mp100>());
}

mp100 Function::resolution(int step) const {
  mp100 total(0);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    for (std::size_t j = 0; j < outputs_[i].size(); ++j) {
      const mp100 term = cotangents_[i].values[j] * outputs_[i][j];
      if (is_finite(term)) total += magnitude(term);
    }
  }
  return ldexp(mp100(total * std::numeric_limits<mp100>::epsilon()), -step);
}

}  // namespace plumbline::differences
