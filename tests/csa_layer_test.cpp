// csa_layer and csa_step: the row worked by hand in docs/ops, which keys each stage of training sees, what gradients
// keep to, and the layer as a chain of the operations it is made of. Random cases: properties/csa_layer_property.cpp.
#include "tests/csa_layer_testing.hpp"

namespace plumbline {
namespace {

using namespace mla_testing;
using namespace csa_layer_testing;

double output_0(const Problem& problem) {  // 9 times channel 1 of the attention output
  return output(run("csa_layer", problem), "output").high[0];
}

TEST(CsaLayer, ByHand) {
  Problem problem = by_hand();
  problem.options["indexer"]["k"] = 1;
  problem.outputs = {"all"};
  const Result sparse = run("csa_layer", problem);
  expect_near(output(sparse, "q_latent"), {1, 1});
  expect_near(output(sparse, "query"), {1, 0, 0, 0, 1, 0, 0, 0});
  expect_near(output(sparse, "kv"), {0.75 * ln3, 4, 0, 0, ln3, 3, 0, 0});
  expect_near(output(sparse, "compressed"), {0, 5, 0, 0, 2 * ln2, 4, 0, 0});
  expect_near(output(sparse, "indexer_index_q"), {1, 0, 0, 0, 1, 0, 0, 0});
  expect_near(output(sparse, "indexer_index_k"), {0, 2, 0, 0, 1.2, 1.6, 0, 0});
  expect_near(output(sparse, "indexer_index_w"), {0.75 * ln2 / 1.2, ln2 / 1.2});
  expect_near(output(sparse, "indexer_scores"), {0, ln2});
  EXPECT_EQ(output(sparse, "indexer_indices").integers, (std::vector<std::int32_t>{1}));
  expect_near(output(sparse, "attention_lse"), {std::log(7.0)});
  expect_near(output(sparse, "attention_output"), {(3 * ln3 + 8 * ln2) / 9, 25.0 / 9, 0, 0});
  expect_near(output(sparse, "output"), {25, 50}, 1e-14);
  expect_near(output(sparse, "loss"), {0}, 0);
  problem.outputs.clear();
  problem.schedule = {{"step", 1}};
  expect_near(output(run("csa_layer", problem), "output"), {25, 50}, 1e-14);
}

TEST(CsaLayer, ByHandWithALoss) {
  Problem problem = by_hand();
  problem.options["indexer"]["k"] = 1;
  problem.options["loss"] = {{"preset", "exact"}};
  problem.outputs = {"all"};
  support::put_cot(problem, "output", f64s({1, 1, 2}, {1, 0}));
  support::put_cot(problem, "loss", f64s({}, {1}));
  const Result dense = run("csa_layer", problem);  // a dense warm-up attends to every block
  expect_near(output(dense, "output"), {27, 54}, 1e-14);
  expect_near(output(dense, "target"), {0.2, 0.8});
  expect_near(output(dense, "student"), {1.0 / 3, 2.0 / 3});
  expect_near(output(dense, "loss"), {0.2 * std::log(0.6) + 0.8 * std::log(1.2)});
  expect_near(gradient(dense, "sink"), {-5.4}, 1e-14);
  expect_near(gradient(dense, "o_b"), {3, 0}, 1e-14);
  expect_near(gradient(dense, "o_a"), {0.9 * (3 * ln3 + 8 * ln2), 27, 0, 0}, 1e-14);
  expect_near(gradient(dense, "indexer_weights_proj"), {-0.64, -0.48});
  expect_near(gradient(dense, "indexer_q_proj"), {-2 * ln2 / 15, -8 * ln2 / 45, 0, 0});

  problem.options["loss"]["sparse"] = true;  // one block: both distributions are 1
  const Result sparse = run("csa_layer", problem);
  expect_near(output(sparse, "output"), {25, 50}, 1e-14);
  expect_near(output(sparse, "loss"), {0}, 0);
}

TEST(CsaLayer, EachCotangentKeepsToItsOwnWeights) {
  for (const bool of_loss : {false, true}) {
    Problem problem = drawn_layer({{"preset", "primus"}, {"sparse", true}});
    const Shape rows = problem.in.at("x").shape;
    support::put_cot(problem, "output",
                     of_loss ? f64s(rows, Numbers(static_cast<std::size_t>(count_of(rows)), 0))
                             : drawn("cot.output", rows));
    support::put_cot(problem, "loss", f64s({}, {of_loss ? 1.0 : 0.0}));
    for (const Value& each : run("csa_layer", problem, Precision::f64).gradients) {
      const auto zero = [](double x) { return x == 0; };
      const bool none = std::all_of(each.high.begin(), each.high.end(), zero);
      EXPECT_EQ(none, each.name.starts_with("indexer_") != of_loss) << each.name;
    }
  }
}

TEST(CsaLayer, StagesOfTrainingSeeTheirBlocks) {
  Problem problem = by_hand();
  const auto with = [&](int k, Json loss) {
    problem.options["indexer"]["k"] = k;
    problem.options["loss"] = std::move(loss);
    return output_0(problem);
  };
  EXPECT_NEAR(with(1, nullptr), 25, 1e-14) << "no loss: the selected block";
  EXPECT_NEAR(with(1, {{"coefficient", 0}}), 25, 1e-14) << "coefficient 0 is no warm-up";
  EXPECT_NEAR(with(1, {{"sparse", false}}), 27, 1e-14) << "dense warm-up: every visible block";
  EXPECT_NEAR(with(1, {{"sparse", true}}), 25, 1e-14) << "sparse training: the selected block";
  EXPECT_NEAR(with(0, nullptr), 16.2, 1e-14) << "k 0: the window alone, 3·3/5·9";
}

TEST(CsaLayer, ASparseLossSelectsAgainstSomething) {
  Problem problem = by_hand();
  problem.options["indexer"]["k"] = 2;
  problem.options["loss"] = {{"sparse", true}};
  expect_error("csa_layer", problem, "option indexer.k", "N = 2");
  problem.options["loss"]["allow_full_selection"] = true;
  EXPECT_NEAR(output_0(problem), 27, 1e-14);
  problem.options["loss"] = {{"sparse", true}, {"coefficient", 0}};
  EXPECT_NEAR(output_0(problem), 27, 1e-14) << "without a loss nothing is at stake";
  problem.options["loss"] = {{"sparse", false}};
  EXPECT_NEAR(output_0(problem), 27, 1e-14);
}

TEST(CsaLayer, AThresholdKeepsTies) {
  Problem problem = by_hand();
  problem.options["indexer"]["k"] = 1;
  support::put_in(problem, "indexer_weights_proj", f64s({2, 1}, {0, 0}));
  EXPECT_NEAR(output_0(problem), 21, 1e-14) << "scores 0, 0: the first block, (3·3 + 1·5)/6·9";
  problem.options["indexer"]["tie"] = "threshold";
  EXPECT_NEAR(output_0(problem), 27, 1e-14) << "both";
  support::put_given(problem, "indexer_indices", i32s({1, 1, 1}, {1}));
  EXPECT_NEAR(output_0(problem), 25, 1e-14) << "given indices are the selection, also then";
}

// A stage given as the layer has it changes nothing; given otherwise it is judged as it is.
TEST(CsaLayer, StagesAreJudgedOneByOne) {
  Problem problem = drawn_layer({{"preset", "megatron_csa_fused"}, {"sparse", true}});
  problem.outputs = {"all"};
  const Result whole = run("csa_layer", problem, Precision::mp50);
  int moved = 0;
  for (const TensorInfo& stage : operation("csa_layer").given) {
    const Value& value = output(whole, stage.name);
    if (stage.kind != Kind::real) continue;
    for (const bool same : {true, false}) {
      Problem given = problem;
      StoredTensor tensor = f64s(value.shape, value.high);
      tensor.low = std::make_shared<StoredTensor>(f64s(value.shape, value.low));
      if (!same) {
        Numbers other = value.high;
        for (std::size_t i = 0; i < other.size(); ++i)
          other[i] = std::abs(other[i] + 0.5 * static_cast<double>(1 + i % 3));
        tensor = f64s(value.shape, other);
      }
      support::put_given(given, stage.name, tensor);
      const Result found = run("csa_layer", given, Precision::mp50);
      double worst = 0;
      for (const char* name : {"output", "loss"}) {
        const Value &x = output(found, name), &y = output(whole, name);
        for (std::size_t i = 0; i < x.high.size(); ++i)
          worst = std::max(worst, std::abs((x.high[i] - y.high[i]) + (x.low[i] - y.low[i])));
      }
      if (same) {
        EXPECT_LE(worst, 1e-28) << stage.name;
      } else {
        moved += worst > 1e-6 ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(moved, 12) << "all but attention_lse and attention_max_logit, which only restate";
}

TEST(CsaLayer, IsTheChainOfItsOperations) {
  for (const char* kind : {"csa", "hca", "window"}) {
    const Problem problem = drawn_layer(nullptr, kind);
    const auto layer = support::evaluate<csa_layer::Op, mp50>(problem, {});
    const Array<mp50> chained = chain(problem);
    const auto shared = support::agreement(layer.out("output"), chained, kind, 1);
    EXPECT_GE(shared.digits, 45) << shared.where;
  }
}

// One row of sequences of many lengths: only what the row needs is projected, whatever else there is.
TEST(CsaLayer, OnlyWhatRowsNeedIsProjected) {
  std::int64_t counts[3] = {}, peaks[3] = {};
  int i = 0;
  for (const std::int64_t tokens : {64, 256, 1024}) {
    Problem problem = drawn_layer(nullptr, "window", tokens);
    problem.options["window"] = 8;
    support::put_in(problem, "row_index", i32s({1}, {static_cast<std::int32_t>(tokens - 1)}));
    const Result result = run("csa_layer", problem, Precision::f64);
    counts[i] = result.forward.rows_fetched;
    peaks[i++] = result.forward.peak_bytes;
  }
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_EQ(counts[1], counts[2]) << "a window does not grow with the sequence";
  EXPECT_EQ(peaks[1], peaks[2]);

  for (const char* kind : {"csa", "hca"}) {
    i = 0;
    for (const std::int64_t tokens : {160, 400, 1200}) {
      Problem problem = drawn_layer(nullptr, kind, tokens);
      support::put_in(problem, "row_index", i32s({1}, {127}));
      const Result result = run("csa_layer", problem, Precision::f64);
      counts[i] = result.forward.rows_fetched;
      peaks[i++] = result.forward.peak_bytes;
    }
    EXPECT_EQ(counts[0], counts[1]) << kind;
    EXPECT_EQ(counts[1], counts[2]) << kind << ": what comes after the row costs nothing";
    EXPECT_EQ(peaks[0], peaks[2]) << kind;
  }
  // Blocks of csa are made where they are selected: more slots, more blocks, up to the 32 that the row sees.
  std::int64_t before = 0;
  for (const int k : {1, 4, 16, 32}) {
    Problem problem = drawn_layer(nullptr, "csa", 160);
    problem.options["indexer"]["k"] = k;
    support::put_in(problem, "row_index", i32s({1}, {127}));
    const std::int64_t now = run("csa_layer", problem, Precision::f64).forward.rows_fetched;
    EXPECT_GT(now, before) << k;
    before = now;
  }
  Problem all = drawn_layer(nullptr, "csa", 160);
  all.options["indexer"]["k"] = 33;
  support::put_in(all, "row_index", i32s({1}, {127}));
  EXPECT_EQ(run("csa_layer", all, Precision::f64).forward.rows_fetched, before);
}

TEST(CsaStep, ByHand) {
  const double unread = nan;
  Problem call = by_hand();
  call.in.erase("row_index");
  call.options["indexer"]["k"] = 1;
  support::put_in(call, "x", f64s({1, 1, 2}, {4, 3}));
  const auto state = [&](const char* name, Shape shape, Numbers values) {
    support::put_in(call, std::string("state.") + name, f64s(std::move(shape), std::move(values)));
  };
  state("kv", {1, 3, 4}, Numbers(12, unread));  // token 0 is in no window
  state("compressed", {1, 3, 4}, {0, 5, 0, 0, nan, nan, nan, nan, nan, nan, nan, nan});
  state("indexer_index_k", {1, 3, 4}, {0, 2, 0, 0, nan, nan, nan, nan, nan, nan, nan, nan});
  for (const std::string of : {"", "indexer_"}) {
    state((of + "partial_kv").c_str(), {1, 1, 8}, Numbers(8, unread));
    state((of + "partial_gate").c_str(), {1, 1, 8}, Numbers(8, unread));
    state((of + "prior_kv").c_str(), {1, 1, 8}, {36, 0, 0, 0, 0, 12, 0, 0});
    state((of + "prior_gate").c_str(), {1, 1, 8}, Numbers(8, 0));
  }
  support::put_in(call, "state.prior_present", support::bools({1}, "1"));
  support::put_in(call, "state.length", i32s({1}, {1}));
  support::put_in(call, "state.positions", i32s({1, 3}, {0, -7, -7}));
  support::put_in(call, "state.segment_ids", i32s({1, 3}, {0, 9, 9}));
  const Result after = run("csa_step", call);
  expect_near(output(after, "output"), {25, 50}, 1e-14);
  EXPECT_EQ(output(after, "state.length").integers, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(output(after, "state.positions").integers, (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(output(after, "state.segment_ids").integers, (std::vector<std::int32_t>{0, 0, 0}));
  expect_near(output(after, "state.compressed"), {0, 5, 0, 0, 2 * ln2, 4, 0, 0, 0, 0, 0, 0});
  expect_near(output(after, "state.indexer_index_k"), {0, 2, 0, 0, 1.2, 1.6, 0, 0, 0, 0, 0, 0});
  expect_near(output(after, "state.prior_kv"), {48, 0, 0, 0, 0, 16, 0, 0}, 0);
  expect_near(output(after, "state.prior_gate"), Numbers(8, 0), 0);
  expect_near(output(after, "state.partial_kv"), Numbers(8, 0), 0);
  const Value& kv = output(after, "state.kv");
  EXPECT_NEAR(kv.high[4], ln3, 1e-15);
  EXPECT_EQ(kv.high[8], 0);
}

}  // namespace
}  // namespace plumbline
