// reference/numeric/simulated.hpp
//
// One number of one execution of a contract: every operation rounds as the contract's arithmetic says, or, as the
// adversary, takes any value that the contract's model of rounding allows. Operations run in it unchanged; what comes
// out must lie within the bounds of numeric/bounded.hpp. tests/bounds_test.cpp and `./dev soak` do that.
// The value is held in double; formats whose unit is below 2^-30 are not simulated.
#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "reference/numeric/constants.hpp"
#include "reference/numeric/contract.hpp"
#include "reference/numeric/primitives.hpp"

namespace plumbline {

// Which number came from which, and by what derivative: from it the roundings that move one output furthest.
class Tape {
 public:
  using Node = std::uint32_t;  // 0: a constant
  Node add(Node a, double by_a, Node b = 0, double by_b = 0) {
    if (a == 0 && b == 0) return 0;
    return push(a, by_a, b, by_b);
  }
  // The next rounding, of a number x that came so.
  Node rounded(double x, Node a, double by_a, Node b, double by_b) {
    const Node node = push(a, by_a, b, by_b);
    roundings_.push_back({node, x < 0});
    return node;
  }
  void output(Node node) { outputs_.push_back(node); }
  std::span<const Node> outputs() const { return outputs_; }
  // For each rounding in order, +1 away from zero or −1 toward it: all of them push the output up.
  std::vector<signed char> pushing(Node output) const;

 private:
  struct Step {
    Node a, b;
    double by_a, by_b;
  };
  struct Rounded {
    Node node;
    bool negative;
  };
  Node push(Node a, double by_a, Node b, double by_b) {
    steps_.push_back({a, b, by_a, by_b});
    return static_cast<Node>(steps_.size());
  }
  std::vector<Step> steps_;
  std::vector<Rounded> roundings_;
  std::vector<Node> outputs_;
};

// How this thread's simulated numbers round.
struct Execution {
  enum class Rounding {
    declared,
    away,
    toward,
    up,
    down,
    random,
    runs,
    chosen  // one by one, as a tape found out
  } rounding = Rounding::declared;
  std::uint64_t seed = 1;
  double sign = 1;       // of a run
  Tape* tape = nullptr;  // records what follows
  std::span<const signed char> choice;
  std::size_t next = 0;  // of the choices

  // Uniform in [0, 1), splitmix64.
  double draw() {
    std::uint64_t z = (seed += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
};
inline Execution& this_execution() {
  thread_local Execution execution;
  return execution;
}

class Simulated {
 public:
  Simulated() = default;
  template <class N>
  requires std::is_arithmetic_v<N>
  explicit Simulated(N x) : value_(static_cast<double>(x)) {}
  double value() const { return value_; }
  explicit operator double() const { return value_; }

  Tape::Node node() const { return node_; }

  // Where a number came from: its operands and its derivatives by them.
  struct From {
    Tape::Node a = 0, b = 0;
    double by_a = 0, by_b = 0;
  };
  // x as it is, by nothing that could round; by an operation that had nothing to round; as the execution rounds it, to a
  // relative unit and an absolute least; and of an elementary function.
  static Simulated exact(double x, const From& from);
  static Simulated unrounded(double x, const From& from);
  static Simulated rounded(double x, double unit, double least, const From& from);
  static Simulated accurate(double x, double error, double least, const From& from);

  // Nothing is rounded where an operand is 0, or a factor 1.
  Simulated& operator+=(Simulated x);
  Simulated& operator-=(Simulated x) { return *this += -x; }
  Simulated& operator*=(Simulated x) { return *this = *this * x; }
  Simulated& operator/=(Simulated x) { return *this = *this / x; }
  friend Simulated operator-(Simulated x) { return exact(-x.value_, {x.node_, 0, -1, 0}); }
  friend Simulated operator+(Simulated a, Simulated b);
  friend Simulated operator-(Simulated a, Simulated b) { return a + (-b); }
  friend Simulated operator*(Simulated a, Simulated b);
  friend Simulated operator/(Simulated a, Simulated b);
  friend bool operator==(Simulated a, Simulated b) { return a.value_ == b.value_; }
  friend auto operator<=>(Simulated a, Simulated b) { return a.value_ <=> b.value_; }

 private:
  double value_ = 0;
  Tape::Node node_ = 0;
};

inline bool is_nan(Simulated x) { return std::isnan(x.value()); }
inline bool is_finite(Simulated x) { return std::isfinite(x.value()); }
Simulated exp(Simulated x);
Simulated log(Simulated x);
Simulated sqrt(Simulated x);
Simulated sin(Simulated x);
Simulated cos(Simulated x);
inline Simulated expm1(Simulated x) { return exp(x) - Simulated(1); }
inline Simulated floor(Simulated x) { return Simulated(std::floor(x.value())); }
inline Simulated ceil(Simulated x) { return Simulated(std::ceil(x.value())); }

template <> struct FromDouble<Simulated> {
  static Simulated make(double x) { return Simulated(x); }
  static Simulated constant(double x);
};
template <> struct Pi<Simulated> {
  static Simulated make() { return Simulated::rounded(pi<f64>(), this_arithmetic()->unit, 0, {}); }
};
Simulated round_at(Point point, Simulated x);

// As a kernel does it on the way back: from a logit that was computed again and the logarithm that was stored.
template <> inline Simulated LogSum<Simulated>::weight_again(const Simulated& x) const {
  const Simulated lse = log();
  if (!is_finite(x) || !is_finite(lse)) return weight(x);
  return exp(x - lse);
}

}  // namespace plumbline

template <> class std::numeric_limits<plumbline::Simulated> {
 public:
  static constexpr bool is_specialized = true;
  static plumbline::Simulated infinity() {
    return plumbline::Simulated(std::numeric_limits<double>::infinity());
  }
  static plumbline::Simulated quiet_NaN() {
    return plumbline::Simulated(std::numeric_limits<double>::quiet_NaN());
  }
};
