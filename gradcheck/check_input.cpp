#include "gradcheck/check_input.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace plumbline::differences {

std::string decimal(const mp100& x) { return x.str(40, std::ios_base::scientific); }

InputCheck::InputCheck(const Operation& operation, const Problem& problem, const Cotangents& all,
                       const std::string& input, const std::vector<mp100>& gradient,
                       const GradcheckSettings& settings, bool surrogate)
    : operation_(operation),
      problem_(problem),
      cotangents_(reaching(operation, all, input)),
      gradient_(gradient),
      settings_(settings),
      surrogate_(surrogate),
      input_(read_tensor(problem.in.at(input))),
      right_(gradient) {
  report_.name = input;
  report_.shape = problem.in.at(input).shape;
  report_.coordinates = static_cast<std::int64_t>(input_.size());
  report_.digits = all_digits;
  report_.step = step_for(input_, gradient_);
  for (std::size_t i = 0; i < input_.size(); ++i) {
    if (is_finite(input_[i])) finite_.push_back(i);
    if (is_finite(gradient_[i])) largest_ = std::max(largest_, magnitude(gradient_[i]));
  }
}

GradcheckInput InputCheck::run() {
  check_not_finite();
  if (static_cast<std::int64_t>(finite_.size()) <= settings_.max_coordinates) {
    check_coordinates();
  } else {
    check_directions();
  }
  return std::move(report_);
}

Function& InputCheck::function() {
  if (!function_) {
    function_ =
        std::make_unique<Function>(operation_, problem_, cotangents_, report_.name, surrogate_);
  }
  return *function_;
}

// Each thread has its own Function and so its own recording; results lie in the order of the
// displacements, so nothing depends on the number of threads.
std::vector<Slope> InputCheck::slopes(const std::vector<std::vector<Displaced>>& displacements,
                                      bool surrogate) const {
  std::vector<Slope> result(displacements.size());
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex guard;
  const auto work = [&] {
    try {
      std::unique_ptr<Function> own;
      for (std::size_t i = next++; i < displacements.size(); i = next++) {
        if (!own)
          own = std::make_unique<Function>(operation_, problem_, cotangents_, report_.name,
                                           surrogate);
        result[i] = own->slope(displacements[i], report_.step);
      }
    } catch (...) {
      const std::lock_guard lock(guard);
      error = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < settings_.threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (error) std::rethrow_exception(error);
  return result;
}

// Displacing NaN or an infinity says nothing. Where they are not read the gradient is exactly 0;
// where they are read (infinite sinks, nonfinite "allow") it is 0 or NaN.
void InputCheck::check_not_finite() {
  for (std::size_t i = 0; i < input_.size(); ++i) {
    if (is_finite(input_[i])) continue;
    ++report_.not_finite;
    if (gradient_[i] == 0 || (is_nan(gradient_[i]) && function().reads(i))) {
      ++report_.checked;
    } else {
      add_wrong(i, mp100(0), 0, "the input is not finite and not read");
    }
  }
}

void InputCheck::check_coordinates() {
  std::vector<std::vector<Displaced>> displacements;
  for (const std::size_t at : finite_) displacements.push_back({{at, 1}});
  const std::vector<Slope> found = slopes(displacements, surrogate_);
  for (std::size_t i = 0; i < found.size(); ++i) {
    judge_element(finite_[i], found[i]);
    note_kinks(found[i], index_of(finite_[i], report_.shape), -1);
  }
  measure_distance(displacements);
}

bool InputCheck::judge_element(std::size_t at, const Slope& slope) {
  const mp100& gradient = gradient_[at];
  const Displaced displaced[] = {{at, 1}};
  Judgement judged = judge_along(gradient, slope, displaced);
  std::string why = is_finite(gradient) ? "disagrees" : "not finite";
  // Where the values stand still rounding may leave a little of a gradient, where nothing is read
  // it may not.
  if (slope.constant && !slope.undefined && gradient != 0 && !function().reads(at)) {
    judged.verdict = Verdict::wrong;
    why = "the input is not read";
  }
  switch (judged.verdict) {
    case Verdict::unchecked: return true;
    case Verdict::wrong: add_wrong(at, judged.slope, judged.digits, std::move(why)); return false;
    case Verdict::at_resolution: ++report_.at_resolution; break;
    case Verdict::agrees: note_worst(element(at, gradient, judged.slope, judged.digits)); break;
  }
  ++report_.checked;
  return true;
}

Judgement InputCheck::judge_along(const mp100& gradient, const Slope& first,
                                  std::span<const Displaced> displaced) {
  // Making this thread's Function costs an evaluation, so only where its resolution can matter.
  const bool still = first.constant && gradient != first.value;
  return judge(gradient, largest_, first, still ? function().resolution(report_.step) : mp100(0),
               [&](int shift) { return function().slope(displaced, report_.step + shift); });
}

// How far the gradient is from the derivative of the value itself, where it belongs to a surrogate.
void InputCheck::measure_distance(const std::vector<std::vector<Displaced>>& displacements) {
  if (!surrogate_) return;
  const std::vector<Slope> found = slopes(displacements, false);
  mp100 apart(0), largest(0);
  for (std::size_t i = 0; i < found.size(); ++i) {
    mp100 gradient(0);
    for (const Displaced& each : displacements[i]) gradient += gradient_[each.at] * each.weight;
    if (!is_finite(gradient) || !is_finite(found[i].value)) continue;
    apart = std::max(apart, magnitude(mp100(gradient - found[i].value)));
    largest = std::max({largest, magnitude(gradient), magnitude(found[i].value)});
  }
  report_.surrogate_distance = largest == 0 ? 0 : static_cast<double>(mp100(apart / largest));
}

GradcheckElement InputCheck::element(std::size_t at, const mp100& gradient, const mp100& slope,
                                     double digits) const {
  return {index_of(at, report_.shape), decimal(gradient), decimal(slope), digits, {}};
}

void InputCheck::note_worst(const GradcheckElement& each) {
  if (report_.worst && each.digits >= report_.worst->digits) return;
  report_.worst = each;
  report_.digits = std::min(report_.digits, each.digits);
}

void InputCheck::add_wrong(std::size_t at, const mp100& slope, double digits, std::string why) {
  GradcheckElement wrong = element(at, gradient_[at], slope, digits);
  wrong.why = std::move(why);
  ++report_.checked;
  ++report_.wrong_elements;
  note_worst(wrong);
  right_[at] = slope;
  if (report_.wrong.size() < settings_.named) report_.wrong.push_back(std::move(wrong));
}

void InputCheck::note_kinks(const Slope& slope, const Shape& index, std::int64_t direction) {
  for (const Decisions::Kink& kink : slope.kinks) {
    ++report_.kinks;
    if (report_.first_kinks.size() < settings_.named) {
      report_.first_kinks.push_back({index, direction, kink.what, kink.b, kink.t});
    }
  }
}

}  // namespace plumbline::differences
