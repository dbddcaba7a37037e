// reference/indexer_loss/options.hpp
//
// The options of the two indexer losses, described once, and the presets: what each framework trains, as data.
// docs/ops/csa_indexer_loss.md explains every one of them.
#pragma once
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "reference/indexer_scores/score_row.hpp"
#include "reference/mask/mask.hpp"
#include "reference/numeric/choice.hpp"

namespace plumbline::indexer_loss {

enum class Teacher { own, joint, joint_window };
enum class Restrict { before_softmax, after_softmax };
enum class Gradient { of_value, p_minus_t };
enum class Reduction { sum, mean_all, mean_valid, mean_real };
enum class Layout { dense, slots };

inline std::span<const std::string_view> names_of(Teacher) {
  static constexpr std::string_view names[] = {"own", "joint", "joint_window"};
  return names;
}
inline std::span<const std::string_view> names_of(Restrict) {
  static constexpr std::string_view names[] = {"before_softmax", "after_softmax"};
  return names;
}
inline std::span<const std::string_view> names_of(Gradient) {
  static constexpr std::string_view names[] = {"of_value", "p_minus_t"};
  return names;
}
inline std::span<const std::string_view> names_of(Reduction) {
  static constexpr std::string_view names[] = {"sum", "mean_all", "mean_valid", "mean_real"};
  return names;
}
inline std::span<const std::string_view> names_of(Layout) {
  static constexpr std::string_view names[] = {"dense", "slots"};
  return names;
}

struct Options {
  bool sparse = false;
  Teacher teacher = Teacher::own;
  Restrict restrict_to = Restrict::before_softmax;
  Normalisation l1;
  Log target_log, student_log;
  Gradient gradient = Gradient::of_value;
  Reduction reduction = Reduction::sum;
  Layout layout = Layout::dense;
  double coefficient = 1, softmax_scale = 1;
  ScoreScale score_scale = ScoreScale::heads_and_dim;
  bool relu = true;
  MaskOptions mask;
  std::optional<std::int64_t> tokens;  // option S
  // Blocks and windows: csa only.
  std::optional<std::int64_t> m, window;
  Grid grid = Grid::physical;

  template <class Visitor> void fields(Visitor& v) {
    v("sparse", sparse,
      "over the selected visible keys (selected or indices) instead of all visible keys");
    v("teacher", teacher,
      "what stands in the teacher's denominator beside the keys: nothing, window and sink, window");
    v("restrict", restrict_to, "selection before the teacher's softmax, or after it");
    v("l1", l1, "how the head sum T becomes the target t");
    v("target_log", target_log, "logarithm of the target");
    v("student_log", student_log, "logarithm of the student");
    v("gradient", gradient, "derivative of the value, or p - t by definition");
    v("reduction", reduction, "rows to scalar");
    v("layout", layout, "keys side by side, or slot by slot of indices (needs sparse and indices)");
    v("coefficient", coefficient, "factor of the loss");
    v("softmax_scale", softmax_scale, "factor of the teacher's logits; 1: queries arrive scaled");
    v("score_scale", score_scale, "factor of scores made from index_q, index_k, index_w");
    v("relu", relu, "ReLU in those scores");
    v("mask", mask, "who sees whom");
    v("S", tokens, "number of tokens, where no tensor tells");
  }
};

struct Preset {
  std::string_view name, doc;
  Teacher teacher = Teacher::own;
  Normalisation l1 = {};
  Log target_log = {}, student_log = {};
  Gradient gradient = Gradient::of_value;
  Reduction reduction = Reduction::mean_valid;
  ScoreScale score_scale = ScoreScale::heads_and_dim;

  void apply(Options& options) const {
    options.teacher = teacher;
    options.l1 = l1;
    options.target_log = target_log;
    options.student_log = student_log;
    options.gradient = gradient;
    options.reduction = reduction;
    options.score_scale = score_scale;
  }
};

namespace preset {
inline constexpr double flt_min = std::numeric_limits<float>::min();  // 2^-126
inline constexpr double e8 = 1e-8, e10 = 1e-10;
using enum Gradient;
using enum Reduction;
using enum Teacher;

inline constexpr Preset exact{.name = "exact", .doc = "no guard anywhere"};
inline constexpr Preset maxtext_v32{.name = "maxtext_v32",
                                    .doc = "MaxText, DeepSeek-V3.2 indexer loss",
                                    .l1 = {Normalisation::add, e8},
                                    .target_log = {Log::add, e8},
                                    .student_log = {Log::add, e8},
                                    .reduction = mean_all};
inline constexpr Preset maxtext_v4{.name = "maxtext_v4",
                                   .doc = "MaxText, compressed sparse attention",
                                   .l1 = {Normalisation::add, e8},
                                   .target_log = {Log::add, e8},
                                   .student_log = {Log::add, e8}};
inline constexpr Preset megatron{.name = "megatron",
                                 .doc = "Megatron-LM, DeepSeek-V3.2",
                                 .l1 = {Normalisation::clamp, e10},
                                 .target_log = {Log::clamp, e10},
                                 .gradient = p_minus_t,
                                 .reduction = mean_real};
inline constexpr Preset megatron_csa_eager{
    .name = "megatron_csa_eager",
    .doc = "Megatron-LM, compressed sparse attention, unfused",
    .teacher = joint,
    .target_log = {Log::clamp, e10},
    .gradient = p_minus_t,
    .reduction = mean_all};
inline constexpr Preset megatron_csa_fused{
    .name = "megatron_csa_fused",
    .doc = "Megatron-LM, compressed sparse attention, compiled",
    .teacher = joint,
    .l1 = {Normalisation::clamp, flt_min},
    .target_log = {Log::clamp, flt_min},
    .student_log = {Log::clamp, flt_min},
    .gradient = p_minus_t,
    .reduction = mean_all};
inline constexpr Preset primus{.name = "primus",
                               .doc = "Primus",
                               .teacher = joint,
                               .l1 = {Normalisation::clamp, flt_min},
                               .target_log = {Log::add, e10},
                               .student_log = {Log::add, e10},
                               .reduction = mean_all};
inline constexpr Preset veomni{.name = "veomni",
                               .doc = "VeOmni",
                               .teacher = joint,
                               .l1 = {Normalisation::zero_below, flt_min},
                               .gradient = p_minus_t,
                               .reduction = mean_real};
inline constexpr Preset tilelang{.name = "tilelang",
                                 .doc = "TileLang's sparse fine-tuning example (kernel)",
                                 .target_log = {Log::clip, -100},
                                 .student_log = {Log::clip, -100},
                                 .gradient = p_minus_t,
                                 .reduction = Reduction::sum,
                                 .score_scale = ScoreScale::dim};
}  // namespace preset

}  // namespace plumbline::indexer_loss
