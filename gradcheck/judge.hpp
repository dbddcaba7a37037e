// gradcheck/judge.hpp
//
// One gradient (an element, or its product with a direction) against slopes of the function.
#pragma once
#include <functional>

#include "gradcheck/function.hpp"

namespace plumbline::differences {

// The step 2^(e − 80) for an input of size about 2^e. The error of a slope has two parts: rounding,
// κ·2^(−332)/h relative to phi' with κ the condition of the function, and truncation, (s·h)⁴/30
// with s the input's size over the length on which the function changes. At 2^−80 there is room for
// κ up to 2^150 and s up to 2^55 before 30 digits (2^−100) are lost; a well-scaled function keeps
// about 75.
constexpr int step_below_scale = 80;
int step_for(const std::vector<mp100>& input, const std::vector<mp100>& gradient);

constexpr double all_digits = 100;
// −log10(error / largest), at most all_digits, which stands for no error at all.
double digits_of(const mp100& error, const mp100& largest);

enum class Verdict { agrees, at_resolution, wrong, unchecked };
struct Judgement {
  Verdict verdict = Verdict::agrees;
  double digits = 0;  // of `slope`
  mp100 slope{0};     // the one the verdict rests on
};

// `again(n)`: the slope with a step 2^n times as long. It is asked for only when `first` does not
// agree; a verdict of wrong needs two steps whose slopes agree with each other better than with the
// gradient.
Judgement judge(const mp100& gradient, const mp100& largest, const Slope& first,
                const mp100& resolution, const std::function<Slope(int)>& again);

}  // namespace plumbline::differences
