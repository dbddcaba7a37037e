#include "gradcheck/judge.hpp"

#include <algorithm>

#include "gradcheck/gradcheck.hpp"

namespace plumbline::differences {
namespace {

int exponent_of(const mp100& x) {
  int exponent = 0;
  frexp(x, &exponent);
  return exponent - 1;
}

// One more step length of the ladder.
struct Rung {
  int shift;
  Slope slope;
  mp100 error;
};

// A wrong gradient is wrong by the same amount at every step, while rounding falls with longer
// steps and truncation with shorter ones: two slopes that are far closer to each other than to the
// gradient prove it wrong.
bool prove_wrong(const Rung& a, const Rung& b) {
  if (a.slope.constant || b.slope.constant)
    return false;  // values that do not move say little about the slope
  const mp100 apart = magnitude(mp100(a.slope.value - b.slope.value));
  return ldexp(apart, 8) <= a.error && ldexp(apart, 8) <= b.error;
}

}  // namespace

// The median over the coordinates that the gradient says are read, since hidden ones may hold
// anything.
int step_for(const std::vector<mp100>& input, const std::vector<mp100>& gradient) {
  for (const bool read_only : {true, false}) {
    std::vector<int> exponents;
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (!is_finite(input[i]) || input[i] == 0 || (read_only && gradient[i] == 0)) continue;
      exponents.push_back(exponent_of(input[i]));
    }
    if (exponents.empty()) continue;
    const auto middle = exponents.begin() + static_cast<std::ptrdiff_t>(exponents.size() / 2);
    std::nth_element(exponents.begin(), middle, exponents.end());
    return *middle - step_below_scale;
  }
  return -step_below_scale;
}

double digits_of(const mp100& error, const mp100& largest) {
  if (error == 0) return all_digits;
  if (!is_finite(error) || largest == 0) return 0;
  return std::min(all_digits, static_cast<double>(mp100(log10(mp100(largest / error)))));
}

Judgement judge(const mp100& gradient, const mp100& largest, const Slope& first,
                const mp100& resolution, const std::function<Slope(int)>& again) {
  const bool valueless = first.undefined || !is_finite(first.value);
  if (is_nan(gradient) && valueless) return {Verdict::agrees, all_digits, first.value};
  if (!is_finite(first.value)) return {Verdict::unchecked, 0, first.value};
  if (!is_finite(gradient)) return {Verdict::wrong, 0, first.value};
  Judgement best{Verdict::at_resolution, -all_digits, first.value};
  const auto try_rung = [&](int shift, Slope slope) {
    const mp100 error = magnitude(mp100(gradient - slope.value));
    const double digits = digits_of(error, std::max(largest, magnitude(slope.value)));
    if (is_finite(slope.value) && digits > best.digits)
      best.digits = digits, best.slope = slope.value;
    return Rung{shift, std::move(slope), error};
  };
  Rung start = try_rung(0, first);
  bool moved = !first.constant;
  if (best.digits >= gradcheck_digits) return {Verdict::agrees, best.digits, best.slope};
  if (valueless) return {Verdict::unchecked, best.digits, best.slope};
  for (const int stride : {16, -16}) {
    Rung last = start;
    for (int shift = stride; shift <= 48 && shift >= -32; shift += stride) {
      Rung next = try_rung(shift, again(shift));
      moved = moved || !next.slope.constant;
      if (best.digits >= gradcheck_digits) return {Verdict::agrees, best.digits, best.slope};
      if (prove_wrong(last, next)) return {Verdict::wrong, best.digits, next.slope.value};
      last = std::move(next);
    }
  }
  if (!moved && magnitude(gradient) > resolution) best.verdict = Verdict::wrong;
  return best;
}

}  // namespace plumbline::differences
