// csa_compress: numbers that a hand can follow, the corners of the rules, what is not read, and work. Peer numbers:
// peer_test; random shapes and splits: properties/csa_compress_property.cpp.
#include "tests/mla_testing.hpp"

namespace plumbline {
namespace {

using namespace mla_testing;
using support::bools;

const double ln3 = std::log(3.0);

// docs/ops/csa_compress.md: five tokens, m = 2, D = 2; a row of kv is lane A | lane B. The gates are 0, the bias gives
// the second token of a block weight 3 in channel 0.
const Numbers page_kv = {6, 8, 1, 3, 2, 0, 5, 3, 9, 9, 3, 4, 9, 9, 3, 4, 7, 7, 7, 7};

Problem page(Json more = Json::object()) {
  Json options = {{"m", 2}, {"norm", false}};
  options.update(more);
  return support::problem(options, {{"kv", f64s({1, 5, 4}, page_kv)},
                                    {"gate", f64s({1, 5, 4}, Numbers(20))},
                                    {"position_bias", f64s({2, 4}, {0, 0, 0, 0, ln3, 0, ln3, 0})}});
}

TEST(CsaCompress, TheNumberOfThePage) {
  const Result pooled = run("csa_compress", page());
  expect_near(output(pooled, "compressed"), {4, 3, 3, 4});
  expect_near(output(pooled, "leftover_kv"), {7, 7, 7, 7}, 0);
  expect_near(output(pooled, "leftover_gate"), {0, 0, 0, 0}, 0);
  expect_near(output(pooled, "prior_kv"), {9, 9, 3, 4, 9, 9, 3, 4}, 0);
  EXPECT_EQ(output(pooled, "prior_present").booleans, std::vector<std::uint8_t>{1});

  const double r = std::sqrt(12.5), c2 = std::cos(2.0), s2 = std::sin(2.0);
  const Result normed = run("csa_compress", page({{"norm", true}, {"eps", 0.0}}));
  expect_near(output(normed, "compressed"), {4 / r, 3 / r, 3 / r, 4 / r});
  const Json rope = {{"theta", 77.0}, {"dim", 2}};
  const Result turned = run("csa_compress", page({{"norm", true}, {"eps", 0.0}, {"rope", rope}}));
  expect_near(output(turned, "compressed"),
              {4 / r, 3 / r, (3 * c2 - 4 * s2) / r, (3 * s2 + 4 * c2) / r});
}

TEST(CsaCompress, TheGradientOfThePage) {
  Problem problem = page();
  support::put_cot(problem, "compressed", f64s({1, 2, 2}, {0, 0, 1, 0}));
  const Result result = run("csa_compress", problem);
  const double e = 0.125;
  expect_near(gradient(result, "kv"),
              {e, 0, 0, 0, 3 * e, 0, 0, 0, 0, 0, e, 0, 0, 0, 3 * e, 0, 0, 0, 0, 0});
  expect_near(gradient(result, "gate"),
              {3 * e, 0, 0, 0, -3 * e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  expect_near(gradient(result, "position_bias"), {3 * e, 0, 0, 0, -3 * e, 0, 0, 0});
}

// Block 1 alone: channel 0 is (3 + 3·7)/4 = 6; with block 0 in lane A it is (6 + 3·2 + 3 + 3·7)/8 = 4.5.
Problem last_of_seven(Json more) {
  Problem problem = page(std::move(more));
  Numbers kv = page_kv;
  kv[14] = 7;
  support::put_in(problem, "kv", f64s({1, 5, 4}, kv));
  return problem;
}

TEST(CsaCompress, LaneAIsCutWherePositionsDoNotFollow) {
  const auto second = [](const Problem& problem) {
    return output(run("csa_compress", problem), "compressed").high[2];
  };
  EXPECT_NEAR(second(last_of_seven(Json::object())), 4.5, 1e-15);
  for (const auto& [positions, expected] : {std::pair(support::Integers{0, 1, 0, 1, 2}, 6.0),
                                            {{5, 6, 7, 8, 9}, 4.5},
                                            {{0, 1, 3, 4, 5}, 6.0},
                                            {{0, 9, 2, 3, 4}, 4.5}}) {
    Problem problem = last_of_seven(Json::object());
    support::put_in(problem, "positions", i32s({1, 5}, positions));
    EXPECT_NEAR(second(problem), expected, 1e-15) << positions[0] << positions[2];
  }
  // Segments without restarting positions: only boundary segments looks at them.
  for (const char* boundary : {"positions", "segments"}) {
    Problem problem = last_of_seven({{"boundary", boundary}});
    support::put_in(problem, "segment_ids", i32s({1, 5}, {4, 4, 5, 5, 5}));
    EXPECT_NEAR(second(problem), std::string(boundary) == "segments" ? 6 : 4.5, 1e-15);
    support::put_in(problem, "segment_ids", i32s({1, 5}, {4, 4, 4, 5, 5}));  // by first tokens
    EXPECT_NEAR(second(problem), 4.5, 1e-15);
  }
  Problem lengths = last_of_seven({{"boundary", "segments"}});
  support::put_in(lengths, "cu_seqlens", i32s({4}, {0, 2, 2, 5}));
  EXPECT_NEAR(second(lengths), 6, 1e-15);
}

TEST(CsaCompress, BlocksOfDocumentsOnTheDocumentGrid) {
  // Documents of 1, padding, 3 and 2 tokens: blocks (2, 3) and (5, 6).
  const Numbers kv = {nan, nan, nan, nan, 1, 2, 3, 5, nan, nan, 0, 4, 1, 3};
  Problem problem = support::problem(
      {{"m", 2}, {"norm", false}, {"grid", "document"}, {"mask", {{"padding_segment", 9}}}},
      {{"kv", f64s({1, 7, 2}, kv)},
       {"gate", f64s({1, 7, 2}, Numbers(14))},
       {"segment_ids", i32s({1, 7}, {1, 9, 2, 2, 2, 3, 3})}});
  const Result result = run("csa_compress", problem);
  expect_near(output(result, "compressed"), {3.5, 3.5}, 0);
  EXPECT_EQ(result.find("leftover_kv"), nullptr);
  EXPECT_EQ(result.find("prior_kv"), nullptr);
  EXPECT_EQ(result.find("prior_present"), nullptr);

  // One document, of four tokens: its second block has the first in lane A.
  support::put_in(problem, "segment_ids", i32s({1, 7}, {1, 9, 2, 2, 2, 2, 9}));
  support::put_in(problem, "kv",
                  f64s({1, 7, 2}, {nan, nan, nan, nan, 1, 2, 3, 5, 8, 8, 0, 4, 1, 3}));
  expect_near(output(run("csa_compress", problem), "compressed"), {3.5, (1 + 3 + 8 + 4) / 4.0}, 0);
  problem.options["mask"] = Json::object();
  expect_error("csa_compress", problem, "in.segment_ids", "document 9 again");
}

TEST(CsaCompress, ThePriorIsRawAndItsFlagAloneDecides) {
  Problem second = last_of_seven(Json::object());
  const Value whole = output(run("csa_compress", second), "compressed");
  const Numbers before(page_kv.begin(), page_kv.begin() + 8);
  Numbers kv(page_kv.begin() + 8, page_kv.begin() + 16);
  kv[6] = 7;
  Problem call = page();
  support::put_in(call, "kv", f64s({1, 2, 4}, kv));
  support::put_in(call, "gate", f64s({1, 2, 4}, Numbers(8)));
  support::put_in(call, "prior_kv", f64s({1, 2, 4}, before));
  support::put_in(call, "prior_gate", f64s({1, 2, 4}, Numbers(8)));
  const auto first = [&] { return output(run("csa_compress", call), "compressed").high[0]; };
  EXPECT_EQ(first(), whole.high[2]);
  support::put_in(call, "positions", i32s({1, 2}, {1000, 3}));  // whatever they say
  EXPECT_EQ(first(), whole.high[2]);
  support::put_in(call, "prior_present", bools({1}, "1"));
  EXPECT_EQ(first(), whole.high[2]);
  support::put_in(call, "prior_present", bools({1}, "0"));
  EXPECT_NEAR(first(), 6, 1e-15);
  support::put_in(call, "prior_kv", f64s({1, 2, 4}, Numbers(8, nan)));  // not read
  EXPECT_NEAR(first(), 6, 1e-15);
  support::put_cot(call, "compressed", f64s({1, 1, 2}, {1, 1}));
  expect_near(gradient(run("csa_compress", call), "prior_kv"), Numbers(8), 0);
}

TEST(CsaCompress, FewerTokensThanABlock) {
  for (const std::int64_t tokens : {0, 1, 2}) {
    const auto wide = static_cast<std::size_t>(4 * tokens);
    Numbers kv(page_kv.begin(), page_kv.begin() + 4 * tokens);
    Problem problem = support::problem({{"m", 3}}, {{"kv", f64s({1, tokens, 4}, kv)},
                                                    {"gate", f64s({1, tokens, 4}, Numbers(wide))}});
    const Result none = run("csa_compress", problem);
    EXPECT_EQ(output(none, "compressed").shape, (Shape{1, 0, 2}));
    EXPECT_EQ(output(none, "leftover_kv").shape, (Shape{1, tokens, 4}));
    expect_near(output(none, "leftover_kv"), kv, 0);
    expect_near(output(none, "prior_kv"), Numbers(12), 0);
    EXPECT_EQ(output(none, "prior_present").booleans, std::vector<std::uint8_t>{0});

    Numbers prior(12);
    for (std::size_t i = 0; i < prior.size(); ++i) prior[i] = static_cast<double>(i);
    support::put_in(problem, "prior_kv", f64s({1, 3, 4}, prior));
    support::put_in(problem, "prior_gate", f64s({1, 3, 4}, prior));
    support::put_cot(problem, "prior_kv", f64s({1, 3, 4}, prior));
    support::put_cot(problem, "leftover_gate", f64s({1, tokens, 4}, Numbers(wide, 2)));
    const Result handed_on = run("csa_compress", problem);
    expect_near(output(handed_on, "prior_kv"), prior, 0);
    EXPECT_EQ(output(handed_on, "prior_present").booleans, std::vector<std::uint8_t>{1});
    expect_near(gradient(handed_on, "prior_kv"), prior, 0);
    expect_near(gradient(handed_on, "prior_gate"), Numbers(12), 0);
    expect_near(gradient(handed_on, "gate"), Numbers(wide, 2), 0);
  }
}

TEST(CsaCompress, OneLane) {
  // HCA: no lane A and no prior; the second block does not see the first.
  const Problem problem = support::problem({{"m", 2}, {"overlap", false}, {"norm", false}},
                                           {{"kv", f64s({1, 5, 1}, {1, 5, 2, 6, 8})},
                                            {"gate", f64s({1, 5, 1}, {0, 0, 0, 0, 0})},
                                            {"position_bias", f64s({2, 1}, {0, ln3})}});
  const Result result = run("csa_compress", problem);
  expect_near(output(result, "compressed"), {4, 5});
  expect_near(output(result, "leftover_kv"), {8}, 0);
  EXPECT_EQ(result.find("prior_kv"), nullptr);
}

TEST(CsaCompress, WhatIsReadAndWhatIsNot) {
  Problem tail = page();
  Numbers kv = page_kv;
  kv[17] = nan;
  support::put_in(tail, "kv", f64s({1, 5, 4}, kv));
  const Result result = run("csa_compress", tail);
  expect_near(output(result, "compressed"), {4, 3, 3, 4});
  EXPECT_TRUE(std::isnan(output(result, "leftover_kv").high[1])) << "a copy is a copy";

  kv = page_kv;
  kv[8] = nan;  // lane A of the last block's token, which this call does not pool
  support::put_in(tail, "kv", f64s({1, 5, 4}, kv));
  expect_error("csa_compress", tail, "in.kv[0, 2, 0]", "NaN");
  tail.options["nonfinite"] = "allow";
  expect_near(output(run("csa_compress", tail), "compressed"), {4, 3, 3, 4});

  // Gates of −inf weigh nothing; where all are, there is no softmax.
  Problem gates = page({{"nonfinite", "allow"}});
  Numbers gate(20);
  gate[6] = -std::numeric_limits<double>::infinity();
  support::put_in(gates, "gate", f64s({1, 5, 4}, gate));
  EXPECT_NEAR(output(run("csa_compress", gates), "compressed").high[0], 1, 1e-15);
  gate[2] = gate[6];
  support::put_in(gates, "gate", f64s({1, 5, 4}, gate));
  EXPECT_TRUE(std::isnan(output(run("csa_compress", gates), "compressed").high[0]));
}

TEST(CsaCompress, Errors) {
  const auto with = [](Problem problem, const std::string& name, StoredTensor tensor) {
    support::put_in(problem, name, std::move(tensor));
    return problem;
  };
  const StoredTensor prior = f64s({1, 2, 4}, Numbers(8)), flag = bools({1}, "1");
  expect_error("csa_compress", page({{"m", 0}}), "option m", "m >= 1");
  expect_error("csa_compress", page({{"m", nullptr}}), "option m", "nothing");
  expect_error("csa_compress", page({{"eps", -1.0}}), "option eps");
  expect_error("csa_compress", page({{"m", 3}}), "in.position_bias", "m = 3");
  expect_error("csa_compress", page({{"boundary", "segments"}}), "option boundary", "segment_ids");
  expect_error("csa_compress", page({{"mask", {{"padding_segment", 1}}}}),
               "option mask.padding_segment", "without segment_ids");
  expect_error("csa_compress", with(page(), "norm_weight", f64s({2}, {1, 1})), "in.norm_weight",
               "norm false");
  expect_error("csa_compress", with(page(), "prior_kv", prior), "in.prior_kv", "prior_gate");
  expect_error("csa_compress", with(page(), "prior_gate", prior), "in.prior_gate", "prior_kv");
  expect_error("csa_compress", with(page(), "prior_present", flag), "in.prior_present[0]",
               "without prior_kv");
  EXPECT_NO_THROW(run("csa_compress", with(page(), "prior_present", bools({1}, "0"))));
  for (const auto& [key, value] :
       {std::pair<std::string, Json>("grid", "document"), {"overlap", false}}) {
    Problem both = with(with(page({{key, value}}), "prior_kv", prior), "prior_gate", prior);
    expect_error("csa_compress", both, "in.prior_kv", key);
    Problem cot = page({{key, value}});
    support::put_cot(cot, "compressed",
                     f64s({1, 2, key == "grid" ? 2 : 4}, Numbers(key == "grid" ? 4 : 8)));
    support::put_cot(cot, "prior_kv", prior);
    expect_error("csa_compress", cot, "cot.prior_kv", "no such output");
  }
  Problem odd = page();
  odd.in.erase("position_bias");
  for (const char* name : {"kv", "gate"}) support::put_in(odd, name, f64s({1, 2, 3}, Numbers(6)));
  expect_error("csa_compress", odd, "in.kv", "an even number of channels");
  expect_error("csa_compress",
               with(page({{"norm", true}, {"eps", 0.0}}), "kv", f64s({1, 5, 4}, Numbers(20))),
               "compressed, block [0, 0]", "eps 0");
  const Problem two = support::problem(
      {{"m", 2}, {"grid", "document"}},
      {{"kv", f64s({2, 2, 2}, Numbers(8))}, {"gate", f64s({2, 2, 2}, Numbers(8))}});
  expect_error("csa_compress", two, "option grid", "B = 1");
}

// ---- mistakes seen in the field -------------------------------------------------------------------

Problem two_documents(Json more) {  // of four tokens; lane A is 8, lane B is 0
  Json options = {{"m", 4}, {"norm", false}};
  options.update(more);
  Numbers kv;
  for (int s = 0; s < 8; ++s) kv.push_back(8), kv.push_back(0);
  return support::problem(options, {{"kv", f64s({1, 8, 2}, kv)},
                                    {"gate", f64s({1, 8, 2}, Numbers(16))},
                                    {"segment_ids", i32s({1, 8}, {1, 1, 1, 1, 2, 2, 2, 2})}});
}

TEST(CsaCompress, I2_LaneAStopsAtADocumentsStart) {
  Problem restart = two_documents(Json::object());
  EXPECT_EQ(output(run("csa_compress", restart), "compressed").high[1], 4) << "positions go on";
  support::put_in(restart, "positions", i32s({1, 8}, {0, 1, 2, 3, 0, 1, 2, 3}));
  expect_near(output(run("csa_compress", restart), "compressed"), {0, 0}, 0);
  for (const auto& [key, value] : {std::pair("boundary", "segments"), {"grid", "document"}}) {
    expect_near(output(run("csa_compress", two_documents({{key, value}})), "compressed"), {0, 0},
                0);
  }
}

TEST(CsaCompress, H5_BlocksTurnAtTheirFirstToken) {
  Numbers kv;
  for (int s = 0; s < 8; ++s) kv.push_back(1), kv.push_back(0);
  const Problem problem = support::problem(
      {{"m", 4}, {"overlap", false}, {"norm", false}, {"rope", {{"theta", 160000.0}, {"dim", 2}}}},
      {{"kv", f64s({1, 8, 2}, kv)}, {"gate", f64s({1, 8, 2}, Numbers(16))}});
  expect_near(output(run("csa_compress", problem), "compressed"),
              {1, 0, std::cos(4.0), std::sin(4.0)});
}

TEST(CsaCompress, I8_ABlockPoolsTwiceItsTokens) {
  Numbers kv;  // token s has the bit s, in lane A for tokens 0 to 3, in lane B for 4 to 7
  for (int s = 0; s < 8; ++s) {
    kv.push_back(s < 4 ? std::ldexp(1.0, s) : 0);
    kv.push_back(s < 4 ? 0 : std::ldexp(1.0, s));
  }
  const Problem problem =
      support::problem({{"m", 4}, {"norm", false}},
                       {{"kv", f64s({1, 8, 2}, kv)}, {"gate", f64s({1, 8, 2}, Numbers(16))}});
  expect_near(output(run("csa_compress", problem), "compressed"), {0, 255.0 / 8}, 0);
}

// A framework guesses that a prior of zeros is none; another hands on gates with the bias already added.
TEST(CsaCompress, APriorOfZerosIsAPrior) {
  Problem problem =
      support::problem({{"m", 1}, {"norm", false}}, {{"kv", f64s({2, 1, 2}, {0, 4, 0, 4})},
                                                     {"gate", f64s({2, 1, 2}, Numbers(4))},
                                                     {"position_bias", f64s({1, 2}, {ln3, 0})},
                                                     {"prior_kv", f64s({2, 1, 2}, Numbers(4))},
                                                     {"prior_gate", f64s({2, 1, 2}, Numbers(4))},
                                                     {"prior_present", bools({2}, "10")}});
  expect_near(output(run("csa_compress", problem), "compressed"), {1, 4});
}

// Rows of kv and gate converted, logits, bytes: as the page states them.
TEST(CsaCompress, WorkUnderStep) {
  for (const auto& [m, tokens, width] :
       {std::array<std::int64_t, 3>{2, 41, 3}, {5, 23, 2}, {1, 40, 1}, {20, 70, 1}}) {
    const std::int64_t blocks = tokens / m, run_of = std::max<std::int64_t>(1, 16 / m),
                       runs = (blocks + run_of - 1) / run_of;
    const auto count = static_cast<std::size_t>(tokens * 2 * width);
    Problem problem = support::problem({{"m", m}, {"norm", false}},
                                       {{"kv", f64s({1, tokens, 2 * width}, Numbers(count, 0.5))},
                                        {"gate", f64s({1, tokens, 2 * width}, Numbers(count))}});
    const Work whole = run("csa_compress", problem, Precision::f64).forward;
    EXPECT_EQ(whole.rows_fetched, 2 * m * (blocks + runs - 1));
    EXPECT_EQ(whole.evaluations, (2 * blocks - 1) * m * width);
    std::int64_t held = 0;  // blocks of a run and, but for the first, the one before it
    for (std::int64_t first = 0; first < blocks; first += run_of)
      held = std::max(held, std::min(run_of, blocks - first) + (first > 0 ? 1 : 0));
    EXPECT_EQ(whole.peak_bytes, 8 * (2 * held * m * 2 * width + 2 * m));
    for (const std::int64_t step : {1, 3, 7, 100}) {
      problem.schedule = {{"step", step}};
      const Work stepped = run("csa_compress", problem, Precision::f64).forward;
      EXPECT_EQ(stepped.rows_fetched, 2 * m * blocks) << step;
      EXPECT_EQ(stepped.evaluations, whole.evaluations) << step;
      EXPECT_EQ(stepped.peak_bytes, 8 * (4 * m * 2 * width + 2 * m)) << step;
    }
  }
}

}  // namespace
}  // namespace plumbline
