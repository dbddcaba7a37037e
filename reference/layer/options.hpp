// reference/layer/options.hpp
//
// The indexer loss as an option of a layer: the options of the loss operation but for its mask, layout and shapes,
// which the layer sets, under a preset of its own.
#pragma once
#include <optional>

#include "reference/error.hpp"
#include "reference/indexer_loss/options.hpp"
#include "reference/operation/run.hpp"

namespace plumbline::layer {

// Name: an enum with names_of() and preset_of().
template <class Name> struct LossOptions : indexer_loss::Options {
  Name preset{};
  bool allow_full_selection = false;
  std::optional<ScoreScale> named_score_scale;  // absent: what the indexer names, else the preset's

  template <class Visitor> void fields(Visitor& v) {
    v("preset", preset, "sets the fields below");
    v.prepare([this] { preset_of(preset).apply(*this); });
    v("sparse", sparse, "over the selected visible keys instead of all visible keys");
    v("teacher", teacher, "what stands in the teacher's denominator beside the keys");
    v("restrict", restrict_to, "selection before the teacher's softmax, or after it");
    v("l1", l1, "how the head sum T becomes the target t");
    v("target_log", target_log, "logarithm of the target");
    v("student_log", student_log, "logarithm of the student");
    v("gradient", gradient, "derivative of the value, or p - t by definition");
    v("reduction", reduction, "rows to scalar");
    v("coefficient", coefficient, "factor of the loss; 0: no loss");
    v("softmax_scale", softmax_scale, "factor of the teacher's logits");
    v("score_scale", named_score_scale,
      "factor of the student's scores; default: what the indexer names, else the preset's");
    v("relu", relu, "ReLU in those scores");
    v("allow_full_selection", allow_full_selection, "a sparse loss may select every key");
  }
};

// An output on request is the loss's: it is computed then, also at coefficient 0.
inline bool wants_loss(const Run& run) {
  for (const char* name : {"row_loss", "row_valid", "log_mass", "head_sum", "target", "student"}) {
    if (run.wants(name)) return true;
  }
  return false;
}

// A sparse loss selects against something, or says that it knows better.
inline void check_selection(bool computes, bool sparse, bool allowed, std::int64_t k,
                            std::int64_t keys, const char* letter) {
  if (!computes || !sparse || allowed || keys == 0 || k < keys) return;
  throw Error(
      "option indexer.k",
      std::to_string(k) + " with " + letter + " = " + std::to_string(keys) + " and a sparse loss",
      "k < " + std::string(letter) +
          ", or loss.allow_full_selection true: nothing is selected against");
}

}  // namespace plumbline::layer
