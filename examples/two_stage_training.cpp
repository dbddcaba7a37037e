// Two stages of training an indexer, on one small csa_layer in f64, through plumbline/plumbline.hpp alone.
//   two_stage_training [FOLDER]
// Warm-up: the loss is dense, the language model is not trained, and stage_routing says so. Then sparse: both are.
// Plain gradient descent, one rule for every weight: what must not move has a gradient of exactly 0. With a folder
// the first and the last problem are written there, for `plumbline gradcheck`. docs/two-stage-training.md.
#include <cstdio>
#include <cstring>
#include <map>
#include <plumbline/plumbline.hpp>
#include <string>
#include <vector>

namespace {

using plumbline::Json;
using plumbline::Shape;
using Numbers = std::vector<double>;

constexpr std::int64_t S = 24, E = 8, H = 2, D = 8, Rq = 6, m = 2, A = 2, e = 4, G = 2, r = 4,
                       k = 4;
constexpr int warm_up_steps = 25, sparse_steps = 25;
constexpr double rate = 0.25, coefficient = 4;  // of the KL in the loss

struct Tensor {
  Shape shape;
  Numbers values;
};

// Multiples of 1/256 in [-spread, spread), the same on every machine.
Tensor draw(std::uint32_t seed, const Shape& shape, double spread, double centre = 0) {
  Tensor tensor{shape, {}};
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (std::int64_t i = 0; i < plumbline::count_of(shape); ++i) {
    state = state * 1664525u + 1013904223u;
    const auto step = static_cast<int>(state >> 24) - 128;
    tensor.values.push_back(centre + spread * static_cast<double>(step) / 128);
  }
  return tensor;
}

using Weights = std::map<std::string, Tensor>;

Weights first_weights() {
  Weights weights;
  std::uint32_t seed = 0;
  const auto add = [&](const std::string& name, const Shape& shape, double spread, double centre) {
    weights[name] = draw(++seed, shape, spread, centre);
  };
  add("wq_a", {E, Rq}, 0.5, 0), add("q_norm", {Rq}, 0.25, 1), add("wq_b", {Rq, H, D}, 0.5, 0);
  add("wkv", {E, D}, 0.5, 0), add("kv_norm", {D}, 0.25, 1), add("kv_proj", {E, 2 * D}, 0.5, 0);
  add("gate_proj", {E, 2 * D}, 0.5, 0), add("position_bias", {m, 2 * D}, 0.5, 0);
  add("compress_norm", {D}, 0.5, 1.5), add("sink", {H}, 0.5, 0);
  add("o_a", {G, H * D / G, r}, 0.5, 0), add("o_b", {G * r, E}, 0.5, 0);
  add("indexer_q_proj", {Rq, A, e}, 0.5, 0), add("indexer_kv_proj", {E, 2 * e}, 0.5, 0);
  add("indexer_gate_proj", {E, 2 * e}, 0.5, 0), add("indexer_position_bias", {m, 2 * e}, 0.5, 0);
  add("indexer_kv_norm_weight", {e}, 0.25, 1), add("indexer_weights_proj", {E, A}, 0.5, 0);
  return weights;
}

plumbline::StoredTensor stored(const std::string& name, const Tensor& tensor) {
  plumbline::StoredTensor view;  // of numbers that outlive it
  view.name = name;
  view.data = reinterpret_cast<const std::byte*>(tensor.values.data());
  view.dtype = plumbline::Dtype::f64;
  view.shape = tensor.shape;
  view.stride = plumbline::row_major(tensor.shape);
  view.present = true;
  return view;
}

struct Stage {
  const char* name;
  bool sparse;
  Json options() const {
    return {{"m", m},
            {"window", 4},
            {"rope", {{"theta", 100.0}, {"dim", 4}}},
            {"indexer", {{"k", k}, {"rope", {{"theta", 100.0}, {"dim", 2}}}}},
            {"loss", {{"sparse", sparse}, {"coefficient", coefficient}}}};
  }
  // Whether this stage trains the language model, as the library routes it.
  bool trains_model() const {
    plumbline::Problem question;
    question.options = {{"model", "v4"},
                        {"mode", "train"},
                        {"use_indexer", true},
                        {"sparse", sparse},
                        {"coefficient", coefficient}};
    const plumbline::Result answer = plumbline::operation("stage_routing").evaluate(question, {});
    return answer.find("lm_loss")->booleans.at(0) != 0;
  }
};

// Everything of one step: the layer's problem, its loss, and half the mean square distance to a target, which
// stands for the language model's loss.
struct Step {
  plumbline::Problem problem;
  Tensor cot_output{{1, S, E}, {}}, cot_loss{{}, {1}};
  double kl = 0, model = 0;
  plumbline::Result result;

  Step(const Tensor& x, const Tensor& target, const Weights& weights, const Stage& stage) {
    problem.options = stage.options();
    problem.in["x"] = stored("in.x", x);
    for (const auto& [name, weight] : weights) problem.in[name] = stored("in." + name, weight);
    const plumbline::Operation& layer = plumbline::operation("csa_layer");
    plumbline::Evaluation how;
    how.precision = plumbline::Precision::f64;
    const plumbline::Result forward = layer.evaluate(problem, how);
    kl = forward.find("loss")->high.at(0) / coefficient;
    const Numbers& output = forward.find("output")->high;
    const bool trains_model = stage.trains_model();
    for (std::size_t i = 0; i < output.size(); ++i) {
      const double difference = output[i] - target.values[i];
      model += difference * difference / 2 / static_cast<double>(output.size());
      cot_output.values.push_back(trains_model ? difference / static_cast<double>(output.size())
                                               : 0);
    }
    problem.cot["output"] = stored("cot.output", cot_output);
    problem.cot["loss"] = stored("cot.loss", cot_loss);
    how.forward = false;
    how.backward = true;
    result = layer.evaluate(problem, how);
  }
  Step(const Step&) = delete;
};

void save(const std::string& path, const Step& step) {
  std::vector<plumbline::TensorBytes> tensors;
  for (const auto* group : {&step.problem.in, &step.problem.cot}) {
    for (const auto& [name, tensor] : *group) {
      const auto bytes = static_cast<std::size_t>(plumbline::count_of(tensor.shape)) * 8;
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape, {tensor.data, bytes}});
    }
  }
  const Json metadata = {{"schema", 1}, {"op", "csa_layer"}, {"options", step.problem.options}};
  plumbline::write_safetensors(path, tensors, {{"plumbline", metadata.dump()}});
}

bool of_indexer(const std::string& name) { return name.starts_with("indexer_"); }

bool same_bits(const Weights& a, const Weights& b) {  // outside the indexer
  for (const auto& [name, tensor] : a) {
    const Numbers& other = b.at(name).values;
    if (!of_indexer(name) &&
        std::memcmp(tensor.values.data(), other.data(), other.size() * sizeof(double)) != 0)
      return false;
  }
  return true;
}

void train(const std::string& folder) {
  const Tensor x = draw(101, {1, S, E}, 2), target = draw(102, {1, S, E}, 1);
  Weights weights = first_weights();
  const Weights before = weights;
  std::printf("step  stage      KL            model's loss\n");
  int count = 0;
  const auto report = [&](const Stage& stage, const Step& step) {
    std::printf("%4d  %-9s  %.10f  %.10f\n", count, stage.name, step.kl, step.model);
  };
  for (const auto& [stage, steps] : {std::pair(Stage{"warm-up", false}, warm_up_steps),
                                     std::pair(Stage{"sparse", true}, sparse_steps)}) {
    for (int i = 0; i < steps; ++i, ++count) {
      const Step step(x, target, weights, stage);
      if (i % 5 == 0) report(stage, step);
      if (count == 0 && !folder.empty()) save(folder + "/start.safetensors", step);
      for (auto& [name, weight] : weights) {
        const Numbers& gradient = step.result.find(name, true)->high;
        for (std::size_t j = 0; j < gradient.size(); ++j) weight.values[j] -= rate * gradient[j];
      }
    }
    const Step last(x, target, weights, stage);
    report(stage, last);
    std::printf("after %s: weights outside the indexer %s\n", stage.name,
                same_bits(before, weights) ? "as they were, bit for bit" : "have moved");
    if (stage.sparse && !folder.empty()) save(folder + "/end.safetensors", last);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: two_stage_training [FOLDER]\n");
    return 2;
  }
  try {
    train(argc == 2 ? argv[1] : "");
  } catch (const plumbline::Error& error) {
    std::fprintf(stderr, "two_stage_training: %s\n", error.what());
    return 2;
  }
  return 0;
}
