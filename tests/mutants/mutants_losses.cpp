// What is wrong with a loss: its teacher, its logarithms, its mean, its gradient.
#include <cmath>

#include "tests/mutants/sees.hpp"

namespace plumbline::mutants {
namespace {

constexpr double ln2 = 0x1.62e42fefa39efp-1;
const std::string own = "csa_indexer_loss", joint = "csa_indexer_loss, joint",
                  from_indexer = "dsa_indexer_loss, from the indexer",
                  sparse = "dsa_indexer_loss, sparse", clipped = "dsa_indexer_loss, clipped";

// Row losses of the exchanged divergence.
void exchange(Result& result, const Scene&) {
  const Numbers t = numbers_of(*result.find("target")), p = numbers_of(*result.find("student"));
  Numbers rows = numbers_of(*result.find("row_loss"));
  const std::int64_t keys = t.size(2);
  for (std::size_t row = 0; row < rows.at.size(); ++row) {
    rows.at[row] = 0;
    for (std::int64_t k = 0; k < keys; ++k) {
      const std::size_t i = row * static_cast<std::size_t>(keys) + static_cast<std::size_t>(k);
      if (p.at[i] > 0)
        rows.at[row] += p.at[i] * (std::log(p.at[i] + 1e-8) - std::log(t.at[i] + 1e-8));
    }
  }
  set_output(result, "row_loss", rows);
}

}  // namespace

Mutants of_losses() {
  return {
      // The teacher.
      {"missing sink", joint, "the teacher's normaliser leaves out exp(sink)", without({"sink"})},
      {"sink in base 2", joint, "a sink kept for exp2 is read as a natural logarithm",
       input("sink", [](Numbers& x) { x.each([](double v) { return v / ln2; }); })},
      {"sink scaled", joint, "the sink is multiplied by D^-1/2 as if it were a logit",
       input("sink", [](Numbers& x) { x.each([](double v) { return v / std::sqrt(5.0); }); })},
      {"own teacher", joint,
       "normalised over the compressed keys alone, as the other framework does",
       option("/teacher", "own")},
      {"joint teacher without its window", joint, "window keys are left out of the normaliser",
       option("/window", 0)},
      {"window one short", joint, "the window does not count the current token",
       option("/window", 3)},
      {"window one long", joint, "s >= r - W in the place of s > r - W", option("/window", 5)},
      {"target not normalised", own, "the head sum itself is the target: mean over heads forgotten",
       [](Problem& problem, const Scene& scene) {
         Problem asking = scene.problem;
         const Result right = scene.operation.evaluate(asking, {.precision = Precision::f32});
         put(problem.given, "target", numbers_of(*right.find("head_sum")));
       }},
      {"head 0 is the teacher", own, "the first head stands for the sum over heads",
       input("query",
             [](Numbers& x) {
               for (std::int64_t h = 1; h < x.size(2); ++h) x.copy(2, 0, h);
             }),
       right_outputs({"log_mass"})},
      {"last head dropped", own, "H = 3 in chunks of 2: the ragged chunk of heads is not summed",
       [](Problem& problem, const Scene& scene) {
         Problem asking = scene.problem;
         input("query", [](Numbers& x) { x.cut(2, 2); })(asking, scene);
         const Result two = scene.operation.evaluate(asking, {.precision = Precision::f32});
         put(problem.given, "target", numbers_of(*two.find("target")));
       }},
      {"query scaled twice", own, "a query that arrives scaled is multiplied by D^-1/2 again",
       option("/softmax_scale", 0x1.c9f25c5bfedd9p-2)},
      {"logits scaled by 1.002", own, "a scale that was rounded: 0.2 % off",
       option("/softmax_scale", 1.002)},
      {"selection after the softmax", sparse,
       "the teacher is cut to the selection, not restricted to it",
       option("/restrict", "after_softmax")},
      {"heads on wrong keys", sparse,
       "head h reads key head h mod Hk in the place of floor(h Hk / H)",
       input("query",
             [](Numbers& x) {
               x.reorder(2, [](std::int64_t h) { return h == 1 ? 2 : h == 2 ? 1 : h; });
             }),
       right_outputs({"log_mass"})},
      // The logarithms.
      {"student's eps forgotten", own, "ln p in the place of ln(p + 1e-8)",
       option("/student_log", "exact")},
      {"eps clamps", own, "ln max(p, 1e-8) in the place of ln(p + 1e-8)",
       option("/student_log", Json{{"mode", "clamp"}, {"eps", 1e-8}})},
      {"eps too large", own, "1e-6 where the contract says 1e-8",
       option("/student_log", Json{{"mode", "add"}, {"eps", 1e-6}})},
      {"eps of another framework", own, "1e-10 where the contract says 1e-8",
       option("/student_log", Json{{"mode", "add"}, {"eps", 1e-10}})},
      {"student's logarithm clamped", sparse,
       "ln max(p, 1e-10) where the student is exact: the gradient of far keys dies",
       all({option("/student_log", Json{{"mode", "clamp"}, {"eps", 1e-10}}),
            option("/gradient", "of_value")})},
      {"clip forgotten", clipped, "ln p is not kept above -100", option("/student_log", "exact")},
      {"clip at -10", clipped, "ln p is kept above -10",
       option("/student_log", Json{{"mode", "clip"}, {"lo", -10}})},
      {"divergence exchanged", own, "KL(p, t) in the place of KL(t, p)", nullptr, exchange},
      // The mean.
      {"mean over all rows", own, "the sum is divided by B T, empty rows included",
       option("/reduction", "mean_all")},
      {"mean over real rows", own, "rows without keys are counted",
       option("/reduction", "mean_real")},
      {"sum in the place of the mean", own, "the loss is not divided at all",
       option("/reduction", "sum")},
      {"mean over valid rows", joint, "only rows with keys are counted where all are meant",
       option("/reduction", "mean_valid")},
      {"coefficient forgotten", own, "loss and gradient lack their factor",
       option("/coefficient", 1)},
      // The gradient.
      {"gradient times 1.5", own, "a factor that only the backward pass has", nullptr,
       gradient_times("scores", 1.5)},
      {"gradient times 1.002", own, "a factor too close to 1 for tolerances", nullptr,
       gradient_times("scores", 1.002)},
      {"gradient without its coefficient", own,
       "the value has the coefficient, the gradient has not", option("/coefficient", 1),
       only_gradients({"scores"})},
      {"gradient of another mean", own, "the backward pass divides by all rows",
       option("/reduction", "mean_all"), only_gradients({"scores"})},
      {"p minus t", own, "the gradient ignores that eps stands in the logarithm",
       option("/gradient", "p_minus_t"), only_gradients({"scores"})},
      {"gradient of the clipped value", clipped,
       "the value's own derivative where p - t is defined", option("/gradient", "of_value"),
       only_gradients({"scores"})},
      {"gradient's sign", own, "t - p in the place of p - t", nullptr,
       gradient_times("scores", -1)},
      {"dead ReLU passes", from_indexer, "the gradient ignores the ReLU", option("/relu", false),
       only_gradients({"index_q", "index_k", "index_w"})},
      {"scores without heads", from_indexer, "scores are scaled by e^-1/2, without A^-1/2",
       option("/score_scale", "dim")},
  };
}

}  // namespace plumbline::mutants
