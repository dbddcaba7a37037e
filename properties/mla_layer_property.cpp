// properties/mla_layer_property.cpp
//
// The MLA layer as a whole: where gradients may go, its schedules with a loss, decoding through caches, and what
// nobody reads.
#include "properties/mla_case.hpp"
#include "tests/support/digits.hpp"

namespace plumbline::properties {
namespace {

using support::agreement;
using support::Agreement;

GeneratedProblem layer_with_loss(support::Distribution& d, MlaSizes* sizes = nullptr) {
  const MlaSizes n = draw_mla_sizes();
  if (sizes != nullptr) *sizes = n;
  MlaWriter write(n);
  write.whole_layer(true);
  const bool sparse = support::chance(50);
  Json loss = {{"sparse", sparse}, {"coefficient", 0.75}, {"allow_full_selection", true}};
  loss["preset"] = support::one_of<std::string>({"maxtext_v32", "exact", "megatron", "tilelang"});
  write.made.problem.options["loss"] = loss;
  write.cot("output", {n.B, n.S, n.E});
  d.needs("sparse", sparse);
  d.needs("k < S", n.k < n.S);
  return write.made;
}

Array<mp100> exact(const Value& value) {
  Array<mp100> array(value.shape);
  array.values = *static_cast<const std::vector<mp100>*>(value.exact.get());
  return array;
}
bool is_zero(const Value& value) {
  return std::all_of(value.high.begin(), value.high.end(), [](double x) { return x == 0; }) &&
         std::all_of(value.low.begin(), value.low.end(), [](double x) { return x == 0; });
}

// E13, E14: the loss reaches indexer weights alone, the output everything else and nothing of the indexer.
TEST(MlaLayer, LossAndOutputKeepToTheirOwnWeights) {
  support::property([](support::Distribution& d) {
    Problem problem = layer_with_loss(d).problem;
    Problem loss_alone = problem, output_alone = problem;
    const StoredTensor& output = problem.cot.at("output");
    support::put_cot(
        loss_alone, "output",
        support::f64s(output.shape,
                      std::vector<double>(static_cast<std::size_t>(count_of(output.shape)))));
    support::put_cot(loss_alone, "loss", support::f64s({}, {1.0}));
    support::put_cot(output_alone, "loss", support::f64s({}, {0.0}));
    const Operation& layer = operation("mla_layer");
    const Evaluation how{.precision = Precision::f64, .forward = false, .backward = true};
    bool any = false;
    for (const Value& gradient : layer.evaluate(loss_alone, how).gradients) {
      const bool indexer = gradient.name.starts_with("indexer_");
      RC_ASSERT(indexer || is_zero(gradient));
      any = any || (indexer && !is_zero(gradient));
    }
    for (const Value& gradient : layer.evaluate(output_alone, how).gradients) {
      RC_ASSERT(!gradient.name.starts_with("indexer_") || is_zero(gradient));
    }
    d.needs("the loss has a gradient", any);
  });
}

TEST(MlaLayer, SchedulesWithALossAreOneFunction) {
  support::property([](support::Distribution& d) {
    GeneratedProblem drawn = layer_with_loss(d);
    drawn.problem.outputs = {"all"};
    support::put_cot(drawn.problem, "loss", support::f64s({}, {1.5}));
    Problem scheduled = drawn.problem;
    scheduled.schedule = {{"barrier", support::chance(50)},
                          {"head_chunk", support::pick(0, drawn.heads + 1)},
                          {"key_block", support::pick(0, 4)},
                          {"sliced", support::chance(50)},
                          {"absorbed", support::chance(50)}};
    d.notes("absorbed", scheduled.schedule["absorbed"].get<bool>());
    const Evaluation how{.precision = Precision::mp100, .forward = true, .backward = true};
    const Result expected = operation("mla_layer").evaluate(drawn.problem, how);
    const Result found = operation("mla_layer").evaluate(scheduled, how);
    Agreement worst;
    for (const Value& value : expected.outputs) {
      if (value.kind != Kind::real) continue;
      worst.note(agreement(exact(*found.find(value.name)), exact(value), value.name, 1));
    }
    for (const Value& value : expected.gradients) {
      worst.note(agreement(exact(*found.find(value.name, true)), exact(value), value.name, 1));
    }
    RC_LOG() << worst.digits << " digits; " << worst.where << std::endl;
    RC_ASSERT(worst.digits >= 85);
  });
}

StoredTensor pair_of(const Value& value) {
  StoredTensor tensor = support::f64s(value.shape, value.high);
  tensor.low = std::make_shared<StoredTensor>(support::f64s(value.shape, value.low));
  return tensor;
}
// Tokens [first, first + count) of x [B, S, E].
StoredTensor tokens_of(const StoredTensor& x, std::int64_t first, std::int64_t count) {
  Shape shape = x.shape;
  shape[1] = count;
  std::vector<double> values;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t s = first; s < first + count; ++s) {
      for (std::int64_t i = 0; i < shape[2]; ++i) values.push_back(element<double>(x, {b, s, i}));
    }
  }
  return support::f64s(shape, values);
}

// A server's calls, each from the state the one before returned: the whole layer's rows, in 28 digits of files.
TEST(MlaStep, CallsThroughTheirStateGiveTheLayersRows) {
  support::property([](support::Distribution& d) {
    const MlaSizes n = draw_mla_sizes();
    MlaWriter write(n);
    const bool indexer = support::chance(80);
    write.whole_layer(indexer);
    Problem whole = write.made.problem;
    const Evaluation how{.precision = Precision::f192};
    const Result expected = operation("mla_layer").evaluate(whole, how);

    const std::int64_t capacity = n.S + support::pick(0, 2);
    Problem call = whole;
    const auto zeros = [&](std::int64_t width) {
      return support::f64s({n.B, capacity, width},
                           std::vector<double>(static_cast<std::size_t>(n.B * capacity * width)));
    };
    const auto none = [&](const Shape& shape) {
      return support::i32s(shape,
                           std::vector<std::int32_t>(static_cast<std::size_t>(count_of(shape))));
    };
    support::put_in(call, "state.kv_latent", zeros(n.Rkv));
    support::put_in(call, "state.k_pe", zeros(n.dr));
    if (indexer) support::put_in(call, "state.indexer_index_k", zeros(n.e));
    support::put_in(call, "state.length", none({n.B}));
    support::put_in(call, "state.positions", none({n.B, capacity}));
    support::put_in(call, "state.segment_ids", none({n.B, capacity}));
    int calls = 0;
    for (std::int64_t first = 0; first < n.S; ++calls) {
      const std::int64_t count = support::pick(1, n.S - first);
      support::put_in(call, "x", tokens_of(whole.in.at("x"), first, count));
      const Result step = operation("mla_step").evaluate(call, how);
      const Value &rows = *step.find("output"), &all = *expected.find("output");
      double scale = 0, worst = 0;
      for (std::int64_t b = 0; b < n.B; ++b) {
        for (std::int64_t i = 0; i < count * n.E; ++i) {
          const auto at = static_cast<std::size_t>(b * count * n.E + i);
          const auto of = static_cast<std::size_t>((b * n.S + first) * n.E + i);
          scale = std::max(scale, std::abs(all.high[of]));
          worst = std::max(worst,
                           std::abs((rows.high[at] - all.high[of]) + (rows.low[at] - all.low[of])));
        }
      }
      RC_LOG() << "call " << calls << ", tokens " << first << " + " << count << ": " << worst
               << std::endl;
      RC_ASSERT(worst <= std::max(scale, 1.0) * 1e-28);
      for (const char* name : {"state.kv_latent", "state.k_pe", "state.indexer_index_k"}) {
        if (const Value* state = step.find(name)) support::put_in(call, name, pair_of(*state));
      }
      for (const char* name : {"state.length", "state.positions", "state.segment_ids"}) {
        const Value& state = *step.find(name);
        support::put_in(call, name, support::i32s(state.shape, state.integers));
      }
      first += count;
    }
    d.needs("several calls", calls > 1);
    d.notes("indexer", indexer);
  });
}

// Tokens of padding and tokens that no row reads: whatever they hold, no bit of output, loss or gradient changes.
TEST(MlaLayer, TokensThatNobodyReadChangeNoBit) {
  support::property([](support::Distribution& d) {
    MlaSizes n{};
    GeneratedProblem drawn = layer_with_loss(d, &n);
    Problem& problem = drawn.problem;
    support::put_cot(problem, "loss", support::f64s({}, {1.0}));
    std::vector<std::int32_t> segments(static_cast<std::size_t>(n.B * n.S));
    for (std::int32_t& segment : segments) segment = static_cast<std::int32_t>(support::pick(0, 2));
    support::put_in(problem, "segment_ids", support::i32s({n.B, n.S}, segments));
    problem.options["mask"] = {{"padding_segment", 2}};
    Problem poisoned = problem;
    std::vector<double> x = support::numbers_of(problem.in.at("x")),
                        cot = support::numbers_of(problem.cot.at("output"));
    bool any = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (segments[i / static_cast<std::size_t>(n.E)] != 2) continue;
      x[i] = cot[i] = std::numeric_limits<double>::quiet_NaN();
      any = true;
    }
    support::put_in(poisoned, "x", support::f64s({n.B, n.S, n.E}, x));
    support::put_cot(poisoned, "output", support::f64s({n.B, n.S, n.E}, cot));
    const Evaluation how{.precision = Precision::f64, .forward = true, .backward = true};
    const Result clean = operation("mla_layer").evaluate(problem, how),
                 dirty = operation("mla_layer").evaluate(poisoned, how);
    for (std::size_t i = 0; i < clean.outputs.size(); ++i)
      RC_ASSERT(clean.outputs[i].high == dirty.outputs[i].high);
    for (std::size_t i = 0; i < clean.gradients.size(); ++i) {
      RC_ASSERT(clean.gradients[i].high == dirty.gradients[i].high);
    }
    d.needs("padding", any);
  });
}

}  // namespace
}  // namespace plumbline::properties
