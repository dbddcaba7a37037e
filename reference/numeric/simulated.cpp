#include "reference/numeric/simulated.hpp"

namespace plumbline {

std::vector<signed char> Tape::pushing(Node output) const {
  std::vector<double> slope(steps_.size() + 1, 0);
  slope[output] = 1;
  for (std::size_t i = output; i > 0; --i) {
    if (slope[i] == 0) continue;
    const Step& step = steps_[i - 1];
    slope[step.a] += step.by_a * slope[i];
    slope[step.b] += step.by_b * slope[i];
  }
  std::vector<signed char> signs;
  signs.reserve(roundings_.size());
  for (const Rounded& r : roundings_) signs.push_back((slope[r.node] < 0) != r.negative ? -1 : 1);
  return signs;
}

Simulated Simulated::exact(double x, const From& from) {
  Simulated y(x);
  if (Tape* const tape = this_execution().tape)
    y.node_ = tape->add(from.a, from.by_a, from.b, from.by_b);
  return y;
}
// Roundings are counted whether there is something to round or not: an execution that chooses them meets other zeros.
Simulated Simulated::unrounded(double x, const From& from) {
  Execution& e = this_execution();
  ++e.next;
  Simulated y(x);
  if (e.tape != nullptr) y.node_ = e.tape->rounded(x, from.a, from.by_a, from.b, from.by_b);
  return y;
}
Simulated Simulated::rounded(double x, double unit, double least, const From& from) {
  if (x == 0 || !std::isfinite(x)) return unrounded(x, from);
  Execution& e = this_execution();
  const Arithmetic& a = *this_arithmetic();
  using Rounding = Execution::Rounding;
  double y = x;
  const std::size_t place = e.next++;
  if (e.rounding == Rounding::declared) {
    const bool nearest =
        a.nearest || unit == a.unit;  // a truncating accumulator has twice the unit
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    const int bits = static_cast<int>(std::lround(-std::log2(unit))) + (nearest ? 0 : 1);
    const double scaled = std::ldexp(fraction, bits);
    y = std::ldexp(nearest ? std::nearbyint(scaled) : std::trunc(scaled), exponent - bits);
  } else {
    double sign = 1;
    switch (e.rounding) {
      case Rounding::away: sign = 1; break;
      case Rounding::toward: sign = -1; break;
      case Rounding::up: sign = x > 0 ? 1 : -1; break;
      case Rounding::down: sign = x > 0 ? -1 : 1; break;
      case Rounding::random: sign = e.draw() < 0.5 ? -1 : 1; break;
      case Rounding::chosen: sign = place < e.choice.size() ? e.choice[place] : 1; break;
      default:
        if (e.draw() < 1.0 / 150) e.sign = -e.sign;
        sign = e.sign;
    }
    y = x * (1 + sign * unit * 0.999999);
  }
  if (a.flush && least > 0 && std::fabs(y) < least) y = 0;
  Simulated result(y);
  if (e.tape != nullptr) result.node_ = e.tape->rounded(x, from.a, from.by_a, from.b, from.by_b);
  return result;
}
Simulated Simulated::accurate(double x, double error, double least, const From& from) {
  Execution& e = this_execution();
  if (e.rounding != Execution::Rounding::declared || !(std::fabs(x) > 0) || !std::isfinite(x))
    return rounded(x, error, least, from);
  const double unit = this_arithmetic()->unit, room = std::max(0.0, error - unit);
  return rounded(x * (1 + room * (2 * e.draw() - 1)), unit, least, from);
}

// Nothing is rounded where an operand is 0, or a factor 1 or −1.
Simulated& Simulated::operator+=(Simulated x) {
  const From from{node_, x.node_, 1, 1};
  const double sum = value_ + x.value_;
  if (value_ == 0 || x.value_ == 0) return *this = unrounded(sum, from);
  return *this = rounded(sum, this_arithmetic()->add_unit, 0, from);
}
Simulated operator+(Simulated a, Simulated b) {
  const Simulated::From from{a.node_, b.node_, 1, 1};
  if (a.value_ == 0 || b.value_ == 0) return Simulated::unrounded(a.value_ + b.value_, from);
  return Simulated::rounded(a.value_ + b.value_, this_arithmetic()->unit, 0, from);
}
Simulated operator*(Simulated a, Simulated b) {
  const Simulated::From from{a.node_, b.node_, b.value_, a.value_};
  if (std::fabs(a.value_) == 1 || std::fabs(b.value_) == 1)
    return Simulated::unrounded(a.value_ * b.value_, from);
  return Simulated::rounded(a.value_ * b.value_, this_arithmetic()->unit, this_arithmetic()->least,
                            from);
}
Simulated operator/(Simulated a, Simulated b) {
  const double q = a.value_ / b.value_;
  if (b.value_ == 1) return Simulated::unrounded(q, {a.node_, b.node_, 1, -q});
  return Simulated::accurate(q, this_arithmetic()->division, this_arithmetic()->least,
                             {a.node_, b.node_, 1 / b.value_, -q / b.value_});
}

Simulated exp(Simulated x) {
  if (x.value() == 0) return Simulated::unrounded(1, {x.node(), 0, 1, 0});
  const double y = std::exp(x.value());
  return Simulated::accurate(y, this_arithmetic()->exp, this_arithmetic()->least,
                             {x.node(), 0, y, 0});
}
Simulated log(Simulated x) {
  return Simulated::accurate(std::log(x.value()), this_arithmetic()->log, 0,
                             {x.node(), 0, 1 / x.value(), 0});
}
Simulated sqrt(Simulated x) {
  const double y = std::sqrt(x.value());
  return Simulated::accurate(y, this_arithmetic()->rsqrt, 0, {x.node(), 0, 1 / (2 * y), 0});
}
Simulated sin(Simulated x) {
  return Simulated::accurate(std::sin(x.value()), this_arithmetic()->sin, 0,
                             {x.node(), 0, std::cos(x.value()), 0});
}
Simulated cos(Simulated x) {
  return Simulated::accurate(std::cos(x.value()), this_arithmetic()->cos, 0,
                             {x.node(), 0, -std::sin(x.value()), 0});
}

Simulated FromDouble<Simulated>::constant(double x) {
  if (!std::isfinite(x) || static_cast<double>(static_cast<float>(x)) == x) return Simulated(x);
  return Simulated::rounded(x, this_arithmetic()->unit, 0, {});
}
Simulated round_at(Point point, Simulated x) {
  const auto i = static_cast<std::size_t>(point);
  const Arithmetic& a = *this_arithmetic();
  return a.point_unit[i] > 0
             ? Simulated::rounded(x.value(), a.point_unit[i], a.point_least[i], {x.node(), 0, 1, 0})
             : x;
}

}  // namespace plumbline
