// Rotations, norms, products.
#include <algorithm>
#include <cmath>

#include "tests/mutants/edits.hpp"

namespace plumbline::mutants {
namespace {

const std::string rope = "rope", yarn = "rope, yarn", far = "rope, far", rms = "rms_norm",
                  layer = "layer_norm", linear = "linear";

Numbers positions_of(const Problem& problem) {
  if (problem.in.contains("positions")) return numbers_of(problem.in.at("positions"));
  const Shape shape = problem.in.at("x").shape;
  Numbers positions{{shape[0], shape[1]}, {}};
  for (std::int64_t i = 0; i < count_of(positions.shape); ++i)
    positions.at.push_back(static_cast<double>(i % shape[1]));
  return positions;
}
Change positions(const std::function<double(double)>& f) {
  return [=](Problem& problem, const Scene&) {
    Numbers moved = positions_of(problem);
    moved.each(f);
    put(problem.in, "positions", moved, Dtype::i32);
  };
}
double to_bf16(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

// y multiplied row by row by a function of the row of x.
SceneEdit by_row(const std::function<double(const double* x, std::size_t n)>& factor) {
  return [=](Numbers& y, const Scene& scene) {
    const Numbers x = numbers_of(scene.problem.in.at("x"));
    const auto n = static_cast<std::size_t>(x.shape.back());
    for (std::size_t i = 0; i < y.at.size(); ++i) y.at[i] *= factor(&x.at[i / n * n], n);
  };
}
double mean_square(const double* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum / static_cast<double>(n);
}
double mean(const double* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum / static_cast<double>(n);
}
double variance(const double* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += (x[i] - mean(x, n)) * (x[i] - mean(x, n));
  return sum / static_cast<double>(n);
}
constexpr double eps = 1e-6, rms_eps = 1e-5;

// As a kernel in one pass over the row computes it, in f32.
double one_pass_variance(const double* x, std::size_t n) {
  float sum = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto v = static_cast<float>(x[i]);
    sum += v;
    squares += v * v;
  }
  const float m = sum / static_cast<float>(n);
  return std::max(0.0F, squares / static_cast<float>(n) - m * m);
}

}  // namespace

Mutants of_basics() {
  return {
      {"pairs in halves", rope, "rotary channels are the two halves, not (2i, 2i + 1)",
       option("/rope/pairing", "half")},
      {"rotated at the front", rope, "the first channels are rotated, not the last",
       option("/rope/placement", "leading")},
      {"turned back", rope, "the angle has the other sign", option("/rope/inverse", true)},
      {"output in halves", rope, "results are left in the order of the halves",
       option("/rope/output", "half")},
      {"next position", rope, "positions are counted from 1",
       positions([](double p) { return p + 1; })},
      {"base of another model", rope, "theta 10000 where the model has 100",
       option("/rope/theta", 10000)},
      {"frequencies over the width", rope, "theta^(-2i/D) in the place of theta^(-2i/dim)",
       option("/rope/theta", 0x1.58b5a51868c61p+4)},
      {"missing attention factor", rope, "rotated channels lack their factor",
       option("/rope/attention_factor", 1)},
      {"gradient not turned back", rope, "the backward pass rotates as the forward",
       option("/rope/inverse", true), only_gradients({"x"})},
      {"positions in bf16", far, "positions beyond 256 are rounded to even ones and beyond",
       positions(to_bf16)},
      {"base in bf16", yarn, "theta 10000 is stored as 9984", option("/rope/theta", 9984)},
      {"not YaRN", yarn, "frequencies are those of the short context",
       option("/rope/yarn", Json())},
      {"YaRN inverted", yarn, "slow pairs turn faster by the factor",
       option("/rope/yarn/factor", 0.25)},
      {"ramp not truncated", yarn, "the ramp's ends are not rounded to whole pairs",
       option("/rope/yarn/truncate", false)},
      {"ramp ends exchanged", yarn, "beta_fast and beta_slow change places",
       all({option("/rope/yarn/beta_fast", 1), option("/rope/yarn/beta_slow", 32)})},
      {"ramp of another length", yarn, "the new context's length in the place of the original",
       option("/rope/yarn/original_max_position", 256)},

      {"eps outside the root", rms, "1/(rms + eps) in the place of 1/(rms^2 + eps)^1/2", nullptr,
       output("y", by_row([](const double* x, std::size_t n) {
                return std::sqrt(mean_square(x, n) + rms_eps) /
                       (std::sqrt(mean_square(x, n)) + rms_eps);
              }))},
      {"eps over 10", rms, "1e-6, the usual default, where the model has 1e-5",
       option("/eps", 1e-6)},
      {"eps forgotten", rms, "nothing is added to the mean square", option("/eps", 0)},
      {"sum in the place of the mean", rms, "the squares are not divided by D", nullptr,
       output("y", by_row([](const double* x, std::size_t n) {
                const double d = static_cast<double>(n);
                return std::sqrt((mean_square(x, n) + rms_eps) / (mean_square(x, n) * d + rms_eps));
              }))},
      {"weight plus 1", rms, "a weight that is kept as its distance from 1",
       input("weight", [](Numbers& x) { x.each([](double v) { return v + 1; }); })},
      {"gradient through the mean lost", rms,
       "dx = weight g / rms: the norm is taken for a constant", nullptr,
       gradient("x",
                [](Numbers& dx, const Scene& scene) {
                  const Numbers x = numbers_of(scene.problem.in.at("x")),
                                w = numbers_of(scene.problem.in.at("weight")),
                                g = numbers_of(scene.problem.cot.at("y"));
                  const std::size_t n = w.at.size();
                  for (std::size_t i = 0; i < dx.at.size(); ++i)
                    dx.at[i] = g.at[i] * w.at[i % n] /
                               std::sqrt(mean_square(&x.at[i / n * n], n) + rms_eps);
                })},

      {"unbiased variance", layer, "divided by D - 1", nullptr,
       output("y",
              [](Numbers& y, const Scene& scene) {
                const Numbers bias = numbers_of(scene.problem.in.at("bias"));
                const std::size_t n = bias.at.size();
                const double d = static_cast<double>(n);
                Numbers factor = y;
                factor.each([](double) { return 1; });
                by_row([=](const double* x, std::size_t k) {
                  const double v = variance(x, k);
                  return std::sqrt((v + eps) / (v * d / (d - 1) + eps));
                })(factor, scene);
                for (std::size_t i = 0; i < y.at.size(); ++i)
                  y.at[i] = (y.at[i] - bias.at[i % n]) * factor.at[i] + bias.at[i % n];
              })},
      {"variance in one pass", layer, "mean of squares minus square of the mean, in f32", nullptr,
       output("y",
              [](Numbers& y, const Scene& scene) {
                const Numbers bias = numbers_of(scene.problem.in.at("bias"));
                const std::size_t n = bias.at.size();
                Numbers factor = y;
                factor.each([](double) { return 1; });
                by_row([](const double* x, std::size_t k) {
                  return std::sqrt((variance(x, k) + eps) / (one_pass_variance(x, k) + eps));
                })(factor, scene);
                for (std::size_t i = 0; i < y.at.size(); ++i)
                  y.at[i] = (y.at[i] - bias.at[i % n]) * factor.at[i] + bias.at[i % n];
              })},
      {"bias forgotten", layer, "the norm adds nothing", without({"bias"}), only_outputs({"y"})},
      {"eps times 10", layer, "1e-5, the usual default, where the model has 1e-6",
       option("/eps", 1e-5)},

      {"slice one off", linear, "[0, 2) in the place of [1, 3)",
       option("/slice_bounds", Json::array({0, 2}))},
      {"bias not sliced", linear, "the slice takes the first columns of the bias",
       input("bias",
             [](Numbers& x) {
               x.reorder(1, [](std::int64_t o) { return std::max<std::int64_t>(o - 1, 0); });
             })},
      {"bias forgotten", linear, "a quantised path has none", without({"bias"}),
       only_outputs({"y"})},
      {"last input dropped", linear, "I = 7 in chunks of 2: the ragged chunk is not summed",
       input("x", [](Numbers& x) { x.fill(x.shape.size() - 1, 6, 0); }), only_outputs({"y"})},
      {"d_bias of one row", linear, "the sum over rows is lost",
       cotangent("y",
                 [](Numbers& x) {
                   for (std::int64_t n = 1; n < x.size(0); ++n) x.fill(0, n, 0);
                 }),
       only_gradients({"bias"})},
  };
}

}  // namespace plumbline::mutants
