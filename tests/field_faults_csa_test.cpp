// tests/field_faults_csa_test.cpp
//
// Faults that people reported in kernels of compressed sparse attention, one test each, with the right value worked
// out by hand. The names carry the number of the row in the project's list of field faults.
#include "tests/csa_attention_testing.hpp"

namespace plumbline {
namespace {

using namespace attention_testing;

// A row at token 3 of 4 with W = 1 and m = 2: one window key and two blocks, all of logit 0.
Problem small(double sink = nan) {
  Problem p = support::problem({{"m", 2}, {"window", 1}},
                               {{"query", f64s({1, 1, 1, 1}, {0})},
                                {"kv", f64s({1, 4, 1}, {nan, nan, nan, 6})},
                                {"compressed", f64s({1, 2, 1}, {12, 24})}},
                               {{"output", f64s({1, 1, 1, 1}, {1})}});
  if (!std::isnan(sink)) put_in(p, "sink", f64s({1}, {sink}));
  return p;
}
// No window and only empty slots.
Problem empty_row() {
  Problem p = small();
  p.options["window"] = 0;
  put_in(p, "indices", i32s({1, 1, 4}, {-1, -1, -1, -1}));
  return p;
}
Numbers out(const Problem& p) { return output(attend(p), "output").high; }

// ---- A. empty rows --------------------------------------------------------------------------------------------------
TEST(FieldFaultsCsa, A6_a_row_of_empty_slots) {
  Problem p = empty_row();
  put_cot(p, "lse", f64s({1, 1, 1}, {1}));
  const Result r = attend(p);
  expect_numbers(output(r, "output"), {0});
  expect_numbers(output(r, "lse"), {-inf});
  expect_numbers(gradient(r, "query"), {0});
  expect_numbers(gradient(r, "kv"), {0, 0, 0, 0});
  expect_numbers(gradient(r, "compressed"), {0, 0});
}
TEST(FieldFaultsCsa, A8_saved_tensors_of_an_empty_row_are_not_read) {
  Problem p = empty_row();
  const Result clean = attend(p);
  put_given(p, "output", f64s({1, 1, 1, 1}, {nan}));
  put_given(p, "lse", f64s({1, 1, 1}, {0}));
  EXPECT_EQ(support::difference(attend(p), clean), "");
}
TEST(FieldFaultsCsa, A12_lse_of_an_empty_row_is_a_convention) {
  Problem p = empty_row();
  for (const auto& [name, value] :
       {std::pair("-inf", -inf), std::pair("+inf", inf), std::pair("0", 0.0)}) {
    p.options["empty_lse"] = name;
    expect_numbers(output(attend(p), "lse"), {value});
  }
}
TEST(FieldFaultsCsa, A13_a_row_without_keys_poisons_nobody) {
  Problem p = support::problem({{"m", 2}, {"window", 1}},
                               {{"query", f64s({1, 2, 1, 1}, {nan, 1})},
                                {"kv", f64s({1, 2, 1}, {nan, 2})},
                                {"compressed", f64s({1, 1, 1}, {3})},
                                {"row_mask", bools({1, 2}, "01")}},
                               {{"output", f64s({1, 2, 1, 1}, {nan, 1})}});
  const Result both = attend(p);
  Problem alone = support::problem({{"m", 2}, {"window", 1}},
                                   {{"query", f64s({1, 1, 1, 1}, {1})},
                                    {"kv", f64s({1, 2, 1}, {nan, 2})},
                                    {"compressed", f64s({1, 1, 1}, {3})}},
                                   {{"output", f64s({1, 1, 1, 1}, {1})}});
  const Result one = attend(alone);
  EXPECT_EQ(gradient(both, "compressed").high, gradient(one, "compressed").high);
  EXPECT_EQ(gradient(both, "kv").high, gradient(one, "kv").high);
}
TEST(FieldFaultsCsa, A14_a_large_hidden_logit_overflows_nothing) {
  Problem p = small();
  put_in(p, "query", f64s({1, 1, 1, 1}, {1}));
  put_in(p, "kv", f64s({1, 4, 1}, {1e300, inf, nan, 1}));
  put_in(p, "compressed", f64s({1, 2, 1}, {1e300, 1}));
  put_in(p, "valid", bools({1, 1, 2}, "01"));
  const Result r = attend(p);
  expect_numbers(output(r, "output"), {1});
  expect_numbers(gradient(r, "compressed"), {0, 0.5});
}
TEST(FieldFaultsCsa, A15_every_path_has_the_same_empty_rows) {
  const Result whole = attend(empty_row());
  for (const Json& schedule : {Json{{"key_block", 1}}, Json{{"key_block", 3}, {"head_chunk", 1}}}) {
    Problem p = empty_row();
    p.schedule = schedule;
    EXPECT_EQ(support::difference(attend(p), whole), "") << schedule;
  }
}

// ---- B. masks -------------------------------------------------------------------------------------------------------
TEST(FieldFaultsCsa, B1_B2_two_masks_hide_a_block_once) {
  Problem p = small();
  const double one = -2.381976e38;
  put_in(p, "mask", f64s({1, 1, 2}, {one, 0}));
  put_in(p, "valid", bools({1, 1, 2}, "01"));
  expect_numbers(output(attend(p), "output"), {15});  // (6 + 24)/2
  put_in(p, "mask", f64s({1, 1, 2}, {one, one}));
  expect_numbers(output(attend(p), "output"), {6});  // no uniform row over hidden blocks
}
TEST(FieldFaultsCsa, B5_B6_blocks_are_hidden_until_they_end) {  // S = 8, m = 4
  const std::vector<Keys> keys = keys_of(counted(1, 8, 8, 2, {{"m", 4}, {"window", 0}}));
  EXPECT_EQ(keys[0], Keys{});
  EXPECT_EQ(keys[2], Keys{});
  EXPECT_EQ(keys[3], Keys{20});
  EXPECT_EQ(keys[7], (Keys{20, 21}));
}
TEST(FieldFaultsCsa, B8_picks_belong_to_their_query) {
  Problem p = counted(1, 2, 4, 2, {{"m", 2}, {"window", 0}, {"mask", {{"causal", false}}}});
  put_in(p, "indices", i32s({1, 2, 1}, {0, 1}));
  EXPECT_EQ(keys_of(p), (std::vector<Keys>{{20}, {21}}));
}
TEST(FieldFaultsCsa, B10_visible_blocks_are_counted_per_token) {
  EXPECT_EQ(keys_of(counted(1, 2, 8, 2, {{"m", 4}, {"window", 0}})),
            (std::vector<Keys>{{20}, {20, 21}}));  // tokens 6 and 7
}
TEST(FieldFaultsCsa,
     B14_the_window_is_wired) {  // W = 2, v = (8, 0, 0, 0), row at token 3: 0 and not 2
  Problem p = counted(1, 1, 4, 0, {{"m", 5}, {"window", 2}});
  put_in(p, "kv", f64s({1, 4, 1}, {8, 0, 0, 0}));
  EXPECT_EQ(out(p), Numbers{0});
  p.options["window"] = 4;
  EXPECT_EQ(out(p), Numbers{2});
}
TEST(FieldFaultsCsa, B15_the_window_counts_the_current_token) {
  EXPECT_EQ(keys_of(counted(1, 1, 6, 0, {{"m", 7}, {"window", 2}}))[0], (Keys{4, 5}));
}

// ---- C. selection ---------------------------------------------------------------------------------------------------
TEST(FieldFaultsCsa, C10_duplicates_are_a_policy) {
  Problem p = small();
  p.options["window"] = 0;
  put_in(p, "compressed", f64s({1, 2, 1}, {1, 0}));
  put_in(p, "indices", i32s({1, 1, 3}, {0, 0, 1}));
  expect_error([&] { attend(p); }, "in.indices[0, 0, 1]", "a second time");
  p.options["duplicates"] = "multiset";
  const Result twice = attend(p);
  expect_numbers(output(twice, "output"), {2.0 / 3});
  expect_numbers(gradient(twice, "compressed"), {2.0 / 3, 1.0 / 3});
  p.options["duplicates"] = "set";
  const Result once = attend(p);
  expect_numbers(output(once, "output"), {0.5});
  expect_numbers(gradient(once, "compressed"), {0.5, 0.5});
}
TEST(FieldFaultsCsa, C12_no_derivative_through_indices) {
  Problem p = small();
  put_in(p, "indices", i32s({1, 1, 1}, {1}));
  const Result r = attend(p);
  ASSERT_EQ(r.gradients.size(), 3u);  // query, kv, compressed
  expect_numbers(gradient(r, "compressed"), {0, 0.5});
}

// ---- D, F, H. sinks and log-sum-exps --------------------------------------------------------------------------------
TEST(FieldFaultsCsa, D13_H1_lse_bases_and_the_sink) {
  for (const bool base_two : {false, true}) {
    for (const bool include : {false, true}) {
      WorkedRow row;
      row.problem.options["lse_includes_sink"] = include;
      if (base_two) row.problem.options["lse_base"] = 2;
      const mp50 expected = ln(include ? 16 : 10) / (base_two ? ln(2) : mp50(1));
      expect_near(typed<csa_attention::Op>(row.problem).out("lse").values[0], expected);
    }
  }
}
TEST(FieldFaultsCsa, F1_F2_the_sink_has_a_share_and_a_gradient) {
  for (const bool token : {true, false}) {  // the one key is a token, or a block
    Problem p = counted(1, 1, 1, 1, {{"m", 1}, {"window", token ? 1 : 0}});
    put_in(p, "kv", f64s({1, 1, 1}, {1}));
    put_in(p, "compressed", f64s({1, 1, 1}, {1}));
    put_in(p, "valid", bools({1, 1, 1}, token ? "0" : "1"));
    put_in(p, "sink", f64s({1}, {0}));
    put_cot(p, "output", f64s({1, 1, 1, 1}, {1}));
    const Result r = attend(p);
    expect_numbers(output(r, "output"), {0.5});
    expect_numbers(gradient(r, "sink"), {-0.25});
  }
}
TEST(FieldFaultsCsa, F6_the_sink_is_a_term_of_the_denominator) {  // also output·sigmoid(lse − sink)
  const Result with = attend(small(std::log(5.0))), without = attend(small());
  expect_numbers(output(with, "output"), {42.0 / 8});
  expect_numbers(output(without, "output"), {42.0 / 3});
  expect_numbers(output(with, "lse"), {std::log(3.0)});
  EXPECT_NEAR(output(without, "output").high[0] * 3 / 8, output(with, "output").high[0], 1e-14);
}
TEST(FieldFaultsCsa, Infinite_sinks_are_none_and_everything) {
  EXPECT_EQ(support::difference(attend(small(-inf)).outputs, attend(small()).outputs), "");
  const Result all = attend(small(inf));
  expect_numbers(output(all, "output"), {0});
  expect_numbers(output(all, "lse"), {std::log(3.0)});
  expect_numbers(gradient(all, "compressed"), {0, 0});
  expect_numbers(gradient(all, "sink"), {0});
}

// ---- G. sentinels, scatter ------------------------------------------------------------------------------------------
TEST(FieldFaultsCsa, G1_G2_J10_minus_one_is_never_an_address) {
  Problem p = counted(1, 1, 6, 3, {{"m", 2}, {"window", 1}});
  for (const double poison : {nan, inf, 1e300}) {
    put_in(p, "kv", f64s({1, 6, 1}, {poison, poison, poison, poison, poison, 2}));
    put_in(p, "compressed", f64s({1, 3, 1}, {poison, 4, poison}));
    put_in(p, "indices", i32s({1, 1, 4}, {-1, 1, -1, -1}));
    put_cot(p, "output", f64s({1, 1, 1, 1}, {1}));
    const Result r = attend(p);
    expect_numbers(output(r, "output"), {3});
    expect_numbers(gradient(r, "kv"), {0, 0, 0, 0, 0, 0.5});
    expect_numbers(gradient(r, "compressed"), {0, 0.5, 0});
  }
}
TEST(FieldFaultsCsa, G3_an_index_past_the_blocks_is_an_error) {
  for (const int index : {2, -2, 1 << 30}) {
    Problem p = small();
    put_in(p, "indices", i32s({1, 1, 2}, {0, index}));
    expect_error([&] { attend(p); }, "in.indices[0, 0, 1]", "-1 or a key below 2");
  }
}
TEST(FieldFaultsCsa, G6_two_queries_share_a_key) {
  Problem p = support::problem({{"m", 2}, {"window", 2}},
                               {{"query", f64s({1, 2, 1, 1}, {0, 0})},
                                {"kv", f64s({1, 3, 1}, {1, 1, 1})},
                                {"compressed", f64s({1, 1, 1}, {1})}},
                               {{"output", f64s({1, 2, 1, 1}, {6, 15})}});
  const Result r = attend(p);  // each row has two tokens and the block, a third for each
  expect_numbers(gradient(r, "compressed"), {7});
  expect_numbers(gradient(r, "kv"), {2, 7, 5});
}
TEST(FieldFaultsCsa, G8_repeated_backwards_are_bitwise_equal) {
  Problem p = counted(2, 9, 9, 3, {{"m", 3}, {"window", 4}});
  put_cot(p, "output", f64s({2, 9, 1, 1}, support::Numbers(18, 0.3)));
  Evaluation how;
  how.precision = Precision::f64, how.backward = true;
  const Result first = operation("csa_attention").evaluate(p, how);
  for (int again = 0; again < 20; ++again) {
    how.threads = 1 + again % 3;
    EXPECT_EQ(support::difference(operation("csa_attention").evaluate(p, how), first), "");
  }
}
TEST(FieldFaultsCsa, G13_no_state_between_calls) {  // the same shapes, other documents
  const auto keys = [](support::Integers lengths) {
    Problem p = counted(1, 8, 8, 3, {{"m", 2}, {"window", 2}, {"grid", "document"}});
    put_in(p, "cu_seqlens", i32s({3}, std::move(lengths)));
    return keys_of(p);
  };
  const std::vector<Keys> first = keys({0, 3, 8});
  EXPECT_NE(keys({0, 5, 8}), first);
  EXPECT_EQ(keys({0, 3, 8}), first);
}
TEST(FieldFaultsCsa, G15_windows_stay_inside_their_document) {  // documents of 4 and 4, W = 3
  Problem p = counted(1, 8, 8, 0, {{"m", 9}, {"window", 3}});
  put_in(p, "cu_seqlens", i32s({3}, {0, 4, 8}));
  EXPECT_EQ(keys_of(p)[3], (Keys{1, 2, 3}));
  EXPECT_EQ(keys_of(p)[4], Keys{4});
  EXPECT_EQ(keys_of(p)[5], (Keys{4, 5}));
}

// ---- J. what tests could not see --------------------------------------------------------------------------------------
TEST(FieldFaultsCsa, J11_J12_empty_slots_anywhere_and_k_below_what_is_visible) {
  const auto with = [](support::Integers slots) {
    Problem p = counted(1, 1, 12, 6, {{"m", 2}, {"window", 3}});
    const auto k = static_cast<std::int64_t>(slots.size());
    put_in(p, "indices", i32s({1, 1, k}, std::move(slots)));
    return attend(p);
  };
  const Result compact = with({4, 0, 2});
  EXPECT_EQ(support::difference(with({-1, 4, 0, 2}), compact), "");
  EXPECT_EQ(support::difference(with({4, -1, 0, -1, 2}), compact), "");
  EXPECT_EQ(support::difference(with({2, 0, 4, -1, -1, -1}), compact), "");
  EXPECT_NE(support::difference(with({2, 0, 3}), compact), "");
}

}  // namespace
}  // namespace plumbline
