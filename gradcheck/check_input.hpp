// gradcheck/check_input.hpp
//
// One input's gradient, coordinate by coordinate or along directions.
#pragma once
#include <memory>

#include "gradcheck/gradcheck.hpp"
#include "gradcheck/judge.hpp"

namespace plumbline::differences {

std::string decimal(const mp100& x);  // 40 digits after the point

class InputCheck {
 public:
  InputCheck(const Operation& operation, const Problem& problem, const Cotangents& all,
             const std::string& input, const std::vector<mp100>& gradient,
             const GradcheckSettings& settings, bool surrogate);
  GradcheckInput run();

 private:
  void check_not_finite();
  void check_coordinates();
  void check_directions();
  bool check_direction(std::span<const Displaced> direction, const Slope& slope,
                       std::int64_t number);
  bool find_wrong_element(std::span<const Displaced> direction, mp100 excess);
  void measure_distance(const std::vector<std::vector<Displaced>>& displacements);

  // Slopes of many displacements, on the threads of the settings.
  std::vector<Slope> slopes(const std::vector<std::vector<Displaced>>& displacements,
                            bool surrogate) const;
  Judgement judge_along(const mp100& gradient, const Slope& first,
                        std::span<const Displaced> displaced);
  mp100 product(
      std::span<const Displaced> direction) const;  // with the gradient, wrong elements put right
  Function& function();                             // of this thread, made when first needed
  bool judge_element(std::size_t at, const Slope& slope);  // false: wrong
  void add_wrong(std::size_t at, const mp100& slope, double digits, std::string why);
  void note_worst(const GradcheckElement& element);
  void note_kinks(const Slope& slope, const Shape& index, std::int64_t direction);
  GradcheckElement element(std::size_t at, const mp100& gradient, const mp100& slope,
                           double digits) const;

  const Operation& operation_;
  const Problem& problem_;
  const Cotangents cotangents_;
  const std::vector<mp100>& gradient_;
  const GradcheckSettings& settings_;
  const bool surrogate_;
  std::vector<mp100> input_,
      right_;                        // right_: the gradient with the elements found wrong put right
  std::vector<std::size_t> finite_;  // coordinates that can be displaced
  mp100 largest_{0};                 // finite |gradient|
  std::unique_ptr<Function> function_;
  GradcheckInput report_;
};

}  // namespace plumbline::differences
