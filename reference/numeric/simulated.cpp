#include "reference/numeric/simulated.hpp"

namespace plumbline {

Simulated Simulated::rounded(double x, double unit, double least) {
  if (x == 0 || !std::isfinite(x)) return Simulated(x);
  Execution& e = this_execution();
  const Arithmetic& a = *this_arithmetic();
  using Rounding = Execution::Rounding;
  double y = x;
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
      default:
        if (e.draw() < 1.0 / 150) e.sign = -e.sign;
        sign = e.sign;
    }
    y = x * (1 + sign * unit * 0.999999);
  }
  if (a.flush && least > 0 && std::fabs(y) < least) y = 0;
  return Simulated(y);
}
Simulated Simulated::accurate(double x, double error, double least) {
  Execution& e = this_execution();
  if (e.rounding != Execution::Rounding::declared || !(std::fabs(x) > 0) || !std::isfinite(x))
    return rounded(x, error, least);
  const double unit = this_arithmetic()->unit, room = std::max(0.0, error - unit);
  return rounded(x * (1 + room * (2 * e.draw() - 1)), unit, least);
}

// Nothing is rounded where an operand is 0, or a factor 1.
Simulated& Simulated::operator+=(Simulated x) {
  if (value_ == 0 || x.value_ == 0) return *this = Simulated(value_ + x.value_);
  return *this = rounded(value_ + x.value_, this_arithmetic()->add_unit, 0);
}
Simulated operator+(Simulated a, Simulated b) {
  if (a.value_ == 0 || b.value_ == 0) return Simulated(a.value_ + b.value_);
  return Simulated::rounded(a.value_ + b.value_, this_arithmetic()->unit, 0);
}
Simulated operator*(Simulated a, Simulated b) {
  if (a.value_ == 1 || b.value_ == 1) return Simulated(a.value_ * b.value_);
  return Simulated::rounded(a.value_ * b.value_, this_arithmetic()->unit, this_arithmetic()->least);
}
Simulated operator/(Simulated a, Simulated b) {
  if (b.value_ == 1) return a;
  return Simulated::accurate(a.value_ / b.value_, this_arithmetic()->division,
                             this_arithmetic()->least);
}

Simulated exp(Simulated x) {
  if (x.value() == 0) return Simulated(1);
  return Simulated::accurate(std::exp(x.value()), this_arithmetic()->exp, this_arithmetic()->least);
}
Simulated log(Simulated x) {
  return Simulated::accurate(std::log(x.value()), this_arithmetic()->log, 0);
}
Simulated sqrt(Simulated x) {
  return Simulated::accurate(std::sqrt(x.value()), this_arithmetic()->rsqrt, 0);
}
Simulated sin(Simulated x) {
  return Simulated::accurate(std::sin(x.value()), this_arithmetic()->sin, 0);
}
Simulated cos(Simulated x) {
  return Simulated::accurate(std::cos(x.value()), this_arithmetic()->cos, 0);
}

Simulated FromDouble<Simulated>::constant(double x) {
  if (!std::isfinite(x) || static_cast<double>(static_cast<float>(x)) == x) return Simulated(x);
  return Simulated::rounded(x, this_arithmetic()->unit, 0);
}
Simulated round_at(Point point, Simulated x) {
  const auto i = static_cast<std::size_t>(point);
  const Arithmetic& a = *this_arithmetic();
  return a.point_unit[i] > 0 ? Simulated::rounded(x.value(), a.point_unit[i], a.point_least[i]) : x;
}

}  // namespace plumbline
