// reference/stage_routing/stage_routing.hpp
//
// Which keys attention sees and which losses are computed, by model, mode and stage of training;
// docs/ops/stage_routing.md has the whole table. Guarantees: four flags, no numbers, no tensors read.
// Source: DeepSeek-V3.2 report, section 2.1.1 (dense warm-up and sparse training); DeepSeek-V4 report, section 2.3.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reference/operation/run.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline::stage_routing {

enum class Model { v32, v4 };
enum class Mode { train, prefill, autoregressive };
inline std::span<const std::string_view> names_of(Model) {
  static constexpr std::string_view names[] = {"v32", "v4"};
  return names;
}
inline std::span<const std::string_view> names_of(Mode) {
  static constexpr std::string_view names[] = {"train", "prefill", "autoregressive"};
  return names;
}

struct Stage {
  Model model = Model::v32;
  Mode mode = Mode::train;
  bool use_indexer = false, sparse = false;
  double coefficient = 0;
};
struct Routing {
  bool computes_loss, warm_up, attends_all, lm_loss;
};
Routing route(const Stage& stage);

struct Options {
  Model model = Model::v32;
  Mode mode = Mode::train;
  std::optional<bool> use_indexer, sparse;
  std::optional<double> coefficient;

  template <class Visitor> void fields(Visitor& v) {
    v("model", model, "whose layer");
    v("mode", mode, "training, or one of the two calls of a server");
    v("use_indexer", use_indexer, "the layer has an indexer; required");
    v("sparse", sparse, "the indexer loss is over the selected keys; required");
    v("coefficient", coefficient, "factor of the indexer loss; required");
  }
};
struct Inputs {
  template <class Visitor> void fields(Visitor&) {}
};
using Cotangents = Inputs;
template <class T> struct Outputs {
  Array<std::uint8_t> computes_loss, warm_up, attends_all, lm_loss;
  template <class Visitor> void fields(Visitor& v) {
    v("computes_loss", computes_loss, "", "training with an indexer and a coefficient above 0");
    v("warm_up", warm_up, "", "dense warm-up: the loss is computed and not sparse");
    v("attends_all", attends_all, "", "attention sees every visible key, not the selected ones");
    v("lm_loss", lm_loss, "", "the language model's own loss is trained");
  }
};
template <class T> using Gradients = Inputs;

struct Op {
  using Options = stage_routing::Options;
  using Inputs = stage_routing::Inputs;
  using Cotangents = stage_routing::Cotangents;
  template <class T> using Outputs = stage_routing::Outputs<T>;
  template <class T> using Gradients = stage_routing::Gradients<T>;
  static constexpr std::string_view name = "stage_routing";
  static constexpr std::string_view summary =
      "which keys attention sees and which losses a stage computes";
  static constexpr std::string_view formula =
      "computes_loss = train and use_indexer and coefficient > 0;  warm_up = computes_loss and not "
      "sparse;  "
      "lm_loss = not warm_up";
  static constexpr std::span<const std::string_view> honours = {};
  template <class T> static Outputs<T> forward(const Inputs&, const Options& options, const Run&);
  template <class T>
  static Gradients<T> backward(const Inputs&, const Options&, const Run&, const Cotangents&) {
    return {};
  }
};

}  // namespace plumbline::stage_routing
