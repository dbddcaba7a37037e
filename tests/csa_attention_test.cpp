// csa_attention where the answer is known: which keys a row has, closed forms, errors.
#include "reference/csa_attention/problem.hpp"
#include "tests/csa_attention_testing.hpp"

namespace plumbline {
namespace {

using namespace attention_testing;

Typed<mp50> attend_mp50(const Problem& problem) { return typed<csa_attention::Op>(problem); }

// docs/ops/csa_attention.md, "A row by hand"
TEST(CsaAttention, ARowByHand) {
  const WorkedRow row;
  const Typed<mp50> r = attend_mp50(row.problem);
  expect_near(r.out("output").values[1], mp50(30) / 16);
  expect_near(r.out("output").values[0], mp50((2 * ln(2) + 3 * ln(3) + 4 * ln(4)) / 16));
  expect_near(r.out("lse").values[0], ln(10));
  expect_near(r.out("max_logit").values[0], ln(4));
  const mp50 dc[] = {mp50(-7) / 128, mp50(2) / 128, mp50(27) / 128, mp50(68) / 128};
  expect_near(r.grad("sink").values[0], mp50(-90) / 128);
  expect_near(r.grad("query").values[0], mp50(dc[1] * ln(2) + dc[2] * ln(3) + dc[3] * ln(4)));
  expect_near(r.grad("query").values[1], mp50(350) / 128);
  for (std::int64_t i = 0; i < 2; ++i) {
    const mp50 weight[] = {mp50(i + 1) / 16, mp50(i + 3) / 16};
    expect_near(r.grad("kv")({0, 4 + i, 0}), dc[i]);
    expect_near(r.grad("kv")({0, 4 + i, 1}), weight[0]);
    expect_near(r.grad("compressed")({0, 2 * i, 0}), dc[2 + i]);
    expect_near(r.grad("compressed")({0, 2 * i, 1}), weight[1]);
  }
  for (const std::int64_t s : {0, 1, 2, 3}) EXPECT_EQ(r.grad("kv")({0, s, 0}), 0);
  EXPECT_EQ(r.grad("compressed")({0, 1, 1}), 0);
}

TEST(CsaAttention, LseCountsTheSinkInEitherBase) {
  WorkedRow row;
  row.problem.options["lse_includes_sink"] = true;
  row.problem.options["lse_base"] = 2;
  expect_near(attend_mp50(row.problem).out("lse").values[0], mp50(4));
}

TEST(CsaAttention, TheWindowEndsAtTheRow) {
  const auto last = [](std::int64_t window, bool causal) {
    return keys_of(
        counted(1, 1, 6, 0, {{"m", 7}, {"window", window}, {"mask", {{"causal", causal}}}}))[0];
  };
  for (const bool causal : {true, false}) {  // windows stay as they are
    EXPECT_EQ(last(0, causal), Keys{});
    EXPECT_EQ(last(1, causal), Keys{5});
    EXPECT_EQ(last(2, causal), (Keys{4, 5}));
    EXPECT_EQ(last(99, causal), (Keys{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(last(std::numeric_limits<std::int64_t>::max(), causal), (Keys{0, 1, 2, 3, 4, 5}));
  }
}

TEST(CsaAttention, BlocksAreSeenOnceTheyAreComplete) {
  EXPECT_EQ(keys_of(counted(1, 6, 6, 3, {{"m", 2}, {"window", 1}})),
            (std::vector<Keys>{{0}, {1, 20}, {2, 20}, {3, 20, 21}, {4, 20, 21}, {5, 20, 21, 22}}));
  EXPECT_EQ(keys_of(counted(1, 2, 4, 2, {{"m", 2}, {"window", 1}, {"mask", {{"causal", false}}}})),
            (std::vector<Keys>{{2, 20, 21}, {3, 20, 21}}));
}

TEST(CsaAttention, DocumentsCutWindowsAndBlocks) {
  Problem p = counted(1, 6, 6, 3, {{"m", 2}, {"window", 3}});
  put_in(p, "segment_ids", i32s({1, 6}, {7, 7, 7, 4, 4, 4}));
  EXPECT_EQ(keys_of(p),
            (std::vector<Keys>{{0}, {0, 1, 20}, {0, 1, 2, 20}, {3}, {3, 4}, {3, 4, 5, 22}}));
  p.options["mask"]["documents"] = false;
  EXPECT_EQ(keys_of(p)[5], (Keys{3, 4, 5, 20, 21, 22}));
  EXPECT_EQ(keys_of(p)[4], (Keys{2, 3, 4, 20, 21}));
}

TEST(CsaAttention, TheDocumentGridCutsInsideDocuments) {
  Problem p = counted(1, 6, 6, 2, {{"m", 2}, {"window", 1}, {"grid", "document"}});
  put_in(p, "cu_seqlens", i32s({3}, {0, 3, 6}));  // blocks at 0 and at 3
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{0}, {1, 20}, {2, 20}, {3}, {4, 21}, {5, 21}}));
}

TEST(CsaAttention, PaddingIsInNoWindowAndNoBlock) {
  Problem p =
      counted(1, 6, 6, 3,
              {{"m", 2}, {"window", 4}, {"mask", {{"padding_segment", 9}, {"documents", false}}}});
  put_in(p, "segment_ids", i32s({1, 6}, {1, 2, 9, 2, 2, 2}));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{
                            {0}, {0, 1, 20}, {}, {0, 1, 3, 20}, {1, 3, 4, 20}, {3, 4, 5, 20, 22}}));
  EXPECT_EQ(output(attend(p), "lse").high[2], -inf);
}

TEST(CsaAttention, MasksOfKeysAreOfBlocks) {
  Problem p = counted(1, 2, 4, 2, {{"m", 2}, {"window", 2}});
  put_in(p, "valid", bools({1, 2, 2}, "01 01"));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{1, 2}, {2, 3, 21}}));
  put_in(p, "mask", f64s({1, 2, 2}, {0, 0, 0, -inf}));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{1, 2}, {2, 3}}));
}

TEST(CsaAttention, SelectionsLeaveTheWindowAlone) {
  Problem p = counted(1, 2, 6, 3, {{"m", 2}, {"window", 2}});
  put_in(p, "selected", bools({1, 2, 3}, "000 110"));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{3, 4}, {4, 5, 20, 21}}));
  p.in.erase("selected");
  put_in(p, "indices", i32s({1, 2, 3}, {2, -1, 1, -1, -1, -1}));  // row 0 does not see block 2
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{3, 4, 21}, {4, 5}}));
  p.options["strict_selection"] = true;
  expect_error([&] { attend(p); }, "in.indices[0, 0, 0]", "key 2, which the row does not see");
  put_in(p, "indices", i32s({1, 2, 0}, {}));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{3, 4}, {4, 5}}));
}

TEST(CsaAttention, RowsAnywhere) {
  Problem p = counted(1, 3, 6, 3, {{"m", 2}, {"window", 2}});
  put_in(p, "row_index", i32s({3}, {4, 0, 3}));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{3, 4, 20, 21}, {0}, {2, 3, 20, 21}}));
  put_in(p, "row_mask", bools({1, 3}, "011"));
  EXPECT_EQ(keys_of(p)[0], Keys{});
}

// Keys counted with multiplicity among blocks; a window never holds a token twice.
TEST(CsaAttention, ABlockNamedTwice) {
  Problem p = counted(1, 1, 2, 1, {{"m", 2}, {"window", 1}});
  put_in(p, "indices", i32s({1, 1, 3}, {0, -1, 0}));
  expect_error([&] { attend(p); }, "in.indices[0, 0, 2]", "key 0 a second time");
  p.options["duplicates"] = "set";
  EXPECT_EQ(keys_of(p)[0], (Keys{1, 20}));
  p.options["duplicates"] = "multiset";
  expect_numbers(output(attend(p), "lse"), {std::log(3)});
}

TEST(CsaAttention, NoBlockAtAll) {
  Problem p = counted(2, 3, 3, 0, {{"m", 4}, {"window", 2}});
  put_cot(p, "output", f64s({2, 3, 1, 1}, Numbers(6, 1)));
  const Result r = attend(p);
  EXPECT_EQ(gradient(r, "compressed").shape, (Shape{2, 0, 1}));
  expect_numbers(gradient(r, "kv"), {1.5, 1, 0.5, 1.5, 1, 0.5});
  Problem none = counted(1, 0, 0, 0, {{"m", 4}, {"window", 2}});
  EXPECT_EQ(output(attend(none), "output").shape, (Shape{1, 0, 1, 1}));
}

TEST(CsaAttention, VisibleNumbersMustBeFinite) {
  Problem p = counted(1, 2, 6, 3, {{"m", 2}, {"window", 2}});
  put_in(p, "kv", f64s({1, 6, 1}, {nan, nan, inf, 1, nan, 1}));
  expect_error([&] { attend(p); }, "in.kv[0, 4, 0]");
  put_in(p, "kv", f64s({1, 6, 1}, {nan, nan, inf, 1, 1, 1}));
  EXPECT_NO_THROW(attend(p));
  put_in(p, "compressed", f64s({1, 3, 1}, {1, inf, 1}));
  expect_error([&] { attend(p); }, "in.compressed[0, 1, 0]");
  put_in(p, "valid", bools({1, 2, 3}, "101 101"));
  EXPECT_NO_THROW(attend(p));
}

TEST(CsaAttention, Errors) {
  const auto with = [](const char* option, const Json& value) {
    return [=] {
      Problem p = counted(1, 2, 6, 3, {{"m", 2}, {"window", 2}});
      p.options[option] = value;
      if (value.is_null()) p.options.erase(option);
      attend(p);
    };
  };
  expect_error(with("m", nullptr), "option m", "nothing");
  expect_error(with("m", 0), "option m", "m >= 1");
  expect_error(with("window", nullptr), "option window", "nothing");
  expect_error(with("window", -1), "option window", "-1");
  expect_error(with("m", 3), "in.compressed", "floor(S / m)");
  Problem p = counted(1, 2, 6, 3, {{"m", 2}, {"window", 2}});
  put_in(p, "indices", i32s({1, 2, 1}, {3, 0}));
  expect_error([&] { attend(p); }, "in.indices[0, 0, 0]", "-1 or a key below 3");
  put_in(p, "selected", bools({1, 2, 3}, "111 111"));
  expect_error([&] { attend(p); }, "in.indices", "one of them");
}

// A backward from a forward's own tensors, as from its own.
TEST(CsaAttention, SavedTensors) {
  WorkedRow row;
  const Typed<mp50> whole = attend_mp50(row.problem);
  put_given(row.problem, "lse", working(whole.out("lse")));
  put_given(row.problem, "output", working(whole.out("output")));
  for (const int block : {0, 1, 3}) {
    row.problem.schedule["key_block"] = block;
    const Typed<mp50> saved = attend_mp50(row.problem);
    for (const char* name : {"query", "kv", "compressed", "sink"}) {
      for (std::size_t i = 0; i < whole.grad(name).values.size(); ++i)
        expect_near(saved.grad(name).values[i], whole.grad(name).values[i]);
    }
  }
}

// A layer without blocks makes a problem without m and without compressed.
TEST(CsaAttention, AWindowAlone) {
  const Array<f64> query({1, 4, 1, 1}, 0);
  Array<f64> kv({1, 4, 1});
  kv.values = {1, 2, 4, 8};
  const Array<f64> ones({1, 4, 1, 1}, 1);
  csa_attention::Inputs in;
  in.query = view(query, "query"), in.kv = view(kv, "kv");
  csa_attention::Options options;
  options.window = 2;
  csa_attention::Problem<f64> problem(in, options);
  const plumbline::Run run;
  EXPECT_EQ(problem.forward(run).output.values, (Numbers{1, 1.5, 3, 6}));
  csa_attention::Cotangents cot;
  cot.output = view(ones, "output");
  const csa_attention::Gradients<f64> grad = problem.backward(run, cot);
  EXPECT_EQ(grad.kv.values, (Numbers{1.5, 1, 1, 0.5}));
  EXPECT_FALSE(grad.compressed.given());
}

// ---- work and memory: docs/ops/csa_attention.md, "Schedules" ------------------------------------------------------

Result measure(std::int64_t T, std::int64_t S, std::int64_t W, const Json& schedule) {
  const std::int64_t H = 5, D = 3, m = 4, N = S / m;
  const auto fill = [](const Shape& shape) {
    return f64s(shape, Numbers(static_cast<std::size_t>(count_of(shape)), 0.5));
  };
  Problem p = support::problem(
      {{"m", m}, {"window", W}},
      {{"query", fill({1, T, H, D})}, {"kv", fill({1, S, D})}, {"compressed", fill({1, N, D})}},
      {{"output", fill({1, T, H, D})}});
  std::vector<std::int32_t> index;
  for (std::int64_t t = 0; t < T; ++t) index.insert(index.end(), {1, -1, 0, 2});
  put_in(p, "indices", i32s({1, T, 4}, index));
  p.outputs.clear();
  p.schedule = schedule;
  Evaluation how;
  how.precision = Precision::f64;
  how.backward = true;
  return operation("csa_attention").evaluate(p, how);
}

TEST(CsaAttention, WorkAndMemoryFollowTheFormulas) {
  const std::int64_t H = 5, D = 3, W = 7, keys = W + 3;
  for (const std::int64_t block : {0, 4}) {
    for (const std::int64_t chunk : {0, 2}) {
      const Result found = measure(1, 40, W, {{"key_block", block}, {"head_chunk", chunk}});
      const std::int64_t h = chunk == 0 ? H : chunk, n = block == 0 ? keys : block,
                         chunks = (H + h - 1) / h;
      const auto states = h * static_cast<std::int64_t>(sizeof(attention::HeadState<double>));
      EXPECT_EQ(found.forward.evaluations, keys * H);
      EXPECT_EQ(found.forward.normaliser_evaluations, 0);
      EXPECT_EQ(found.forward.rows_fetched, 2 * keys * chunks);
      EXPECT_EQ(found.forward.peak_bytes, 8 * (h * (D + n) + 2 * D) + states);
      EXPECT_EQ(found.backward.evaluations, (block == 0 ? 1 : 2) * keys * H);
      EXPECT_EQ(found.backward.peak_bytes, 8 * (h * (D + 2 * D + 2 + n) + 2 * D) + states);
    }
  }
}

// What rows hold depends neither on the number of tokens nor on that of rows.
TEST(CsaAttention, NothingOverRowsAndTokensIsHeld) {
  for (const Json& schedule : {Json::object(), Json{{"key_block", 4}, {"head_chunk", 2}}}) {
    const Result few = measure(1, 40, 7, schedule), many = measure(96, 400, 7, schedule);
    EXPECT_EQ(many.forward.peak_bytes, few.forward.peak_bytes) << schedule;
    EXPECT_EQ(many.backward.peak_bytes, few.backward.peak_bytes) << schedule;
  }
}

}  // namespace
}  // namespace plumbline
