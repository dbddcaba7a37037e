// tests/field_faults_losses_test.cpp
//
// Faults that people reported in kernels of these losses, their masks and their selections, one test each, with the
// right value worked out by hand. The names carry the number of the row in the project's list of field faults.
#include <gtest/gtest.h>

#include <set>

#include "reference/error.hpp"
#include "tests/support/loss_problems.hpp"

namespace plumbline {
namespace {

using namespace support;

// ---- A. empty rows ----------------------------------------------------------------------------------------------
TEST(FieldFaults, A1_rows_before_the_first_block) {
  const Result result = csa(problem({{"m", 4}}, {{"query", f64s({1, 8, 1, 1}, Numbers(8, 0))},
                                                 {"compressed", f64s({1, 2, 1}, {0, 0})},
                                                 {"scores", f64s({1, 8, 2}, Numbers(16, 0.5))}}));
  EXPECT_EQ(output(result, "row_valid").booleans, (Flags{0, 0, 0, 1, 1, 1, 1, 1}));
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(out(result, "row_loss")[t], 0.0);
    EXPECT_EQ(grad(result, "scores")[2 * t], 0.0);
    EXPECT_EQ(grad(result, "scores")[2 * t + 1], 0.0);
  }
  const Numbers rows = out(result, "row_loss");
  EXPECT_NEAR(out(result, "loss")[0], (rows[3] + rows[4] + rows[5] + rows[6] + rows[7]) / 5,
              1e-16);  // five rows
}
TEST(FieldFaults, A2_an_empty_set_still_has_a_gradient) {
  Problem made = scored(1, 2, {{"layout", "slots"}});
  select(made, 1, {-1, -1});
  put_in(made, "scores", f64s({1, 1, 2}, {0.3, 0.7}));
  EXPECT_EQ(out(dsa(made), "loss"), Numbers{0});
  EXPECT_EQ(grad(dsa(made), "scores"), (Numbers{0, 0}));
}
TEST(FieldFaults, A3_nan_masked_after_log_softmax) {
  Problem made = rows_of(2, 2, {0, 0, 0.75, 0.25}, {-inf, -inf, 0, 0},
                         {{"preset", "exact"}, {"reduction", "sum"}});
  put_in(made, "valid", bools({1, 2, 2}, "00 11"));
  const Result result = dsa(made);
  near(out(result, "row_loss"), {0, 0.75 * std::log(1.5) + 0.25 * std::log(0.5)});
  EXPECT_NEAR(out(result, "row_loss")[1], 0.130812, 1e-6);
  near(grad(result, "scores"), {0, 0, -0.25, 0.25}, 0);
}
TEST(FieldFaults, A13_a_row_without_keys_poisons_nobody) {
  Problem made = raw(2, 4, {{"preset", "exact"}, {"S", 4}, {"reduction", "sum"}}), alone = made;
  for (const char* name : {"query", "index_q", "index_w"}) {
    put_in(alone, name, take(made.in.at(name), 1, {1}));
    overwrite_row(made, name, 2, 0, nan);
  }
  put_in(made, "row_mask", bools({1, 2}, "01"));
  EXPECT_EQ(grad(dsa(made), "index_k"), grad(dsa(alone), "index_k"));
}
TEST(FieldFaults, A14_a_large_hidden_score_leaves_the_gradient_alone) {
  for (const double hidden : {100.0, 1e300, inf, nan}) {
    Problem made = rows_of(1, 3, {0.5, 0.5, 0}, {1, 1, hidden});
    put_in(made, "valid", bools({1, 1, 3}, "110"));
    const Result result = dsa(made);
    near(out(result, "student"), {0.5, 0.5, 0}, 0);
    near(grad(result, "scores"), {0, 0, 0}, 0);
  }
}
TEST(FieldFaults, A15_every_path_agrees_on_empty_rows) {
  Problem made = problem({{"m", 4}}, {{"query", filled("query", {1, 3, 2, 3})},
                                      {"compressed", f64s({1, 0, 3}, {})},
                                      {"scores", f64s({1, 3, 0}, {})}});
  for (const bool barrier : {true, false}) {
    made.schedule = {{"barrier", barrier}};
    for (const Precision precision :
         {Precision::f32, Precision::f64, Precision::f192, Precision::mp50, Precision::mp100}) {
      const Result result = run("csa_indexer_loss", made, {.precision = precision});
      EXPECT_EQ(out(result, "loss"), Numbers{0});
      EXPECT_EQ(out(result, "log_mass"), Numbers(6, -inf));
    }
  }
}

// ---- B. masks ---------------------------------------------------------------------------------------------------
TEST(FieldFaults, B1_B2_sums_of_float_masks_are_sets) {
  const double one = -2.381976e38, two = -4.763952e38;  // 0.7·FLT_MAX; twice that is -inf in f32
  for (const double hidden : {one, two, -inf}) {
    Problem made = rows_of(2, 3, {0, 0, 0, 0, 1, 0}, {1, 2, 3, 1, 2, 3},
                           {{"preset", "exact"}, {"reduction", "mean_valid"}});
    put_in(made, "mask", f32s({1, 2, 3}, {hidden, hidden, hidden, hidden, 0, hidden}));
    const Result result = dsa(made);
    near(out(result, "student"), {0, 0, 0, 0, 1, 0}, 0);  // not uniform over what is masked
    EXPECT_EQ(output(result, "row_valid").booleans, (Flags{0, 1}));
  }
}
TEST(FieldFaults, B4_B5_zero_in_a_float_mask_and_in_a_bool_mask) {
  Problem made = rows_of(1, 2, {1, 1}, {0, 0});
  put_in(made, "mask", f64s({1, 1, 2}, {0, -2.38e38}));
  near(out(dsa(made), "student"), {1, 0}, 0);
  made.in.erase("mask");
  put_in(made, "valid", bools({1, 1, 2}, "00"));  // boolean zero hides
  near(out(dsa(made), "student"), {0, 0}, 0);
  put_in(made, "valid", bools({1, 1, 2}, "11"));
  near(out(dsa(made), "student"), {0.5, 0.5}, 0);
  put_in(made, "mask", f64s({1, 1, 2}, {0, 1}));  // a keep-mask of ones is not a float mask
  EXPECT_THROW(dsa(made), Error);
}
TEST(FieldFaults, B6_B7_the_indexer_ranks_no_future_block) {  // and tokens 0 to 2 see none at all
  const Result result = blocks_of_four(1, 0, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  EXPECT_EQ(indices(result), (Integers{-1, -1, -1, 0, 0, 0, 0, 1}));
}
TEST(FieldFaults, B8_picks_belong_to_their_query) {
  Problem made = scored(2, 2, {{"mask", {{"causal", false}}}});
  select(made, 2, {0, 1});
  near(out(dsa(made), "student"), {1, 0, 0, 1}, 0);
}
TEST(FieldFaults, B10_visible_blocks_are_counted_per_token) {
  EXPECT_EQ(indices(blocks_of_four(2, 6, {1, 2, 1, 2})), (Integers{0, -1, 1, 0}));  // p = 6, 7
}
TEST(FieldFaults, B15_the_window_counts_the_current_token) {
  const Integers one(8, 0);
  EXPECT_NEAR(window_masses(2, one)[5], std::log(16.0 + 32.0), 1e-14);  // W = 2, t = 5: 4 and 5
  EXPECT_NEAR(window_masses(1, one)[5], std::log(32.0), 1e-14);
  EXPECT_EQ(window_masses(0, one)[5], -inf);
}

// ---- C. selection -----------------------------------------------------------------------------------------------
TEST(FieldFaults, C1_ties_at_the_kth_score) {
  EXPECT_EQ(selected(pick_from({1, 1, 1, 0.5}, 2)), (Flags{1, 1, 0, 0}));
  EXPECT_EQ(selected(pick_from({1, 1, 1, 0.5}, 2, "threshold")), (Flags{1, 1, 1, 0}));
}
TEST(FieldFaults, C2_the_plateau_of_zeros) {
  for (int again = 0; again < 20; ++again) {
    EXPECT_EQ(indices(pick_from({3, 0, 0, -0.0, 0, 0}, 3)), (Integers{0, 1, 2}));
  }
}
TEST(FieldFaults, C6_set_tie_rule_and_order_are_three_contracts) {
  EXPECT_EQ(indices(pick_from({2, 2, 1}, 1)), Integers{0});
  EXPECT_EQ(indices(pick_from({2, 2, 1}, 1, "threshold")), Integers{0});  // order: the first k
  EXPECT_EQ(selected(pick_from({2, 2, 1}, 1, "threshold")), (Flags{1, 1, 0}));  // set: every tie
  EXPECT_EQ(indices(pick_from({1, 3, 2}, 3)), (Integers{1, 2, 0}));             // best first
}
TEST(FieldFaults, C7_nan_ranks_last_or_is_refused) {
  EXPECT_EQ(indices(pick_from({nan, 1, 2}, 2)), (Integers{2, 1}));
  EXPECT_EQ(indices(pick_from({nan, 1, -inf}, 3)), (Integers{1, 2, 0}));
  EXPECT_THROW(pick_from({nan, 1, 2}, 2, "lowest_index", {{"nan", "error"}}), Error);
}
TEST(FieldFaults, C8_indices_are_in_range_and_unique) {
  const Result result = topk(problem({{"k", 5}}, {{"scores", filled("z", {2, 7, 7})}}));
  for (std::size_t row = 0; row < 14; ++row) {
    std::set<std::int32_t> seen;
    for (std::size_t slot = 0; slot < 5; ++slot) {
      const std::int32_t key = indices(result)[row * 5 + slot];
      const auto visible = static_cast<std::int32_t>(row % 7 + 1);
      EXPECT_EQ(key < 0, static_cast<std::int32_t>(slot) >= visible);
      EXPECT_TRUE(key < 0 || (key < visible && seen.insert(key).second));
    }
  }
}
TEST(FieldFaults, C9_ranks_select_the_same_set) {  // a row alone, or among others
  const Result all = topk(problem({{"k", 2}, {"mask", {{"causal", false}}}},
                                  {{"scores", f64s({1, 3, 3}, {1, 1, 1, 0, 2, 2, 2, 0, 2})}}));
  EXPECT_EQ(indices(all), (Integers{0, 1, 1, 2, 0, 2}));
  EXPECT_EQ(indices(pick_from({2, 0, 2}, 2)), (Integers{0, 2}));
}
TEST(FieldFaults, C10_a_loss_refuses_a_key_named_twice) {
  Problem made = scored(1, 2);
  select(made, 1, {0, 0, 1});
  EXPECT_EQ(refused_for(made), "in.indices[0, 0, 1]");
}
TEST(FieldFaults, C12_no_derivative_through_indices) {  // S = k + 1
  Problem made = scored(1, 4);
  select(made, 1, {3, 0, 2});
  ASSERT_EQ(dsa(made).gradients.size(), 1u);
  EXPECT_EQ(grad(dsa(made), "scores")[1], 0.0);
}
TEST(FieldFaults, C13_relu_before_the_sum_over_heads) {
  EXPECT_EQ(one_score({-2, 1}, {1, 1}, {{"score_scale", "none"}}), 1);
  EXPECT_EQ(one_score({-2, 1}, {1, 1}, {{"score_scale", "none"}, {"relu", false}}), -1);
}
TEST(FieldFaults, C15_the_tie_rule_has_a_name) {
  EXPECT_EQ(indices(pick_from({5, 5, 5}, 1)), Integers{0});
  EXPECT_THROW(pick_from({5, 5, 5}, 1, "newest"), Error);
}
TEST(FieldFaults, C16_as_many_slots_as_keys_is_a_real_loss) {
  Problem made = scored(4, 4);
  const Result dense = dsa(made);
  select(made, 4, indices(topk(problem({{"k", 4}}, {{"scores", made.in.at("scores")}}))));
  EXPECT_EQ(difference(dsa(made), dense), "");
  EXPECT_NE(grad(dense, "scores")[12], 0.0);
}

// ---- D. teacher -------------------------------------------------------------------------------------------------
TEST(FieldFaults, D1_D3_D4_window_and_sink_stand_in_the_denominator) {
  const Result own = csa(discriminating("own")), joint = csa(discriminating("joint"));
  near(out(own, "target"), {0.5, 0.5});
  near(out(joint, "target"), {7.0 / 12, 5.0 / 12});
  near(out(own, "loss"), {0});
  EXPECT_NEAR(out(joint, "loss")[0], 0.013954, 1e-6);
  near(grad(joint, "scores"), {-1.0 / 12, 1.0 / 12});
}
TEST(FieldFaults, D2_a_partial_log_sum_exp_gives_another_teacher) {
  const double ln4 = std::log(4.0), ln8 = std::log(8.0), ln16 = std::log(16.0);
  near(out(csa(discriminating("joint")), "log_mass"), {ln8, ln16});
  Problem made = discriminating("own");
  put_given(made, "log_mass", f64s({1, 1, 2}, {ln8, ln16}));
  near(out(csa(made), "target"), {7.0 / 12, 5.0 / 12});
  put_given(made, "log_mass", f64s({1, 1, 2}, {ln4, ln4}));  // selected keys only
  near(out(csa(made), "target"), {0.5, 0.5});
}
TEST(FieldFaults, D5_one_head_cannot_see_the_difference) {
  for (const char* teacher : {"own", "joint"}) {
    Problem made = discriminating(teacher);
    put_in(made, "query", take(made.in.at("query"), 2, {0}));
    put_in(made, "sink", take(made.in.at("sink"), 0, {0}));
    near(out(csa(made), "target"), {0.75, 0.25});
  }
}
TEST(FieldFaults, D12_the_divergence_runs_over_keys) {
  const Result result = dsa(rows_of(1, 4, {0.5, 0.25, 0.125, 0.125}, {7, 7, 7, 7}));
  near(out(result, "loss"), {0.25 * ln2});
  near(grad(result, "scores"), {-0.25, 0, 0.125, 0.125}, 0);
}
TEST(FieldFaults, D13_the_saved_log_sum_exp_counts_the_sink) {
  Problem made =
      problem({{"preset", "exact"}, {"teacher", "joint"}, {"window", 0}, {"m", 1}, {"S", 2}},
              {{"query", f64s({1, 1, 1, 1}, {1})},
               {"compressed", f64s({1, 2, 1}, {0, ln2})},
               {"sink", f64s({1}, {std::log(5.0)})},
               {"scores", f64s({1, 1, 2}, {0, 0})}});
  near(out(csa(made), "log_mass"), {std::log(8.0)});
  made.options["teacher"] = "own";
  near(out(csa(made), "log_mass"), {std::log(3.0)});
}
TEST(FieldFaults, D14_E13_raw_indexer_inputs_get_gradients_and_nothing_else_does) {
  const Result result = dsa(raw(6, 6));
  ASSERT_EQ(result.gradients.size(), 3u);
  for (const char* name : {"index_q", "index_k", "index_w"}) {
    double largest = 0;
    for (const double x : grad(result, name)) largest = std::max(largest, std::abs(x));
    EXPECT_GT(largest, 1e-3) << name;
  }
}

// ---- E. value, guards, gradients, scale -------------------------------------------------------------------------
TEST(FieldFaults, E2_a_guard_inside_the_logarithm_caps_value_and_gradient) {
  const auto guarded = [](Json student_log) {
    return dsa(
        rows_of(1, 2, {1, 0}, {-40, 0}, {{"preset", "exact"}, {"student_log", student_log}}));
  };
  near(out(guarded("exact"), "loss"), {40});
  near(grad(guarded("exact"), "scores"), {-1, 1});
  const Result added = guarded({{"mode", "add"}, {"eps", 1e-8}});
  EXPECT_NEAR(out(added, "loss")[0], 18.420681, 1e-6);
  EXPECT_NEAR(grad(added, "scores")[1], 4.2484e-10, 1e-13);
  EXPECT_NEAR(out(guarded({{"mode", "add"}, {"eps", 1e-10}}), "loss")[0], 23.025851, 1e-6);
  const Result clamped = guarded({{"mode", "clamp"}, {"eps", 1e-10}});
  EXPECT_NEAR(out(clamped, "loss")[0], 23.025851, 1e-6);
  EXPECT_EQ(grad(clamped, "scores"), (Numbers{0, 0}));
}
TEST(FieldFaults, E4_clipped_value_and_kernels_gradient_are_two_modes) {
  const auto clipped = [](const char* gradient) {
    return dsa(rows_of(1, 2, {1, 0}, {-200, 0}, {{"preset", "tilelang"}, {"gradient", gradient}}));
  };
  EXPECT_EQ(out(clipped("p_minus_t"), "loss"), Numbers{100});
  near(grad(clipped("p_minus_t"), "scores"), {-1, 1});
  EXPECT_EQ(grad(clipped("of_value"), "scores"), (Numbers{0, 0}));
  EXPECT_EQ(out(dsa(rows_of(1, 2, {1, 0}, {-200, 0})), "loss"), Numbers{200});
}
TEST(FieldFaults, E6_E7_scale_and_cotangent_multiply_the_gradient) {
  Problem made = raw(6, 6);
  Numbers plain = grad(dsa(made), "index_q");
  put_cot(made, "loss", f64s({}, {8192}));  // a grad scaler
  made.options["coefficient"] = 2;          // a context-parallel factor
  Numbers scaled = grad(dsa(made), "index_q");
  for (double& x : plain) x *= 2 * 8192;
  EXPECT_EQ(scaled, plain);
}
TEST(FieldFaults, E9_a_mean_over_ranks_weighs_by_rows) {
  const auto mean = [](std::vector<double> losses) {
    Numbers t, z;
    for (const double loss : losses) {
      t.insert(t.end(), {1, 0, 0, 0});
      z.insert(z.end(), {ln3 - std::log(std::expm1(loss)), 0, 0, 0});  // -ln p_0 = loss
    }
    const auto rows = static_cast<Int>(losses.size());
    return out(dsa(rows_of(rows, 4, t, z, {{"preset", "exact"}, {"reduction", "mean_real"}})),
               "loss")[0];
  };
  EXPECT_NEAR(mean({1, 1, 1, 5}), 2, 1e-14);  // not 3
  EXPECT_NEAR((3 * mean({1, 1, 1}) + 1 * mean({5})) / 4, 2, 1e-14);
}
TEST(FieldFaults, E10_E11_coefficient_zero_is_connected_zeros_on_the_same_path) {
  const Result zero = dsa(raw(6, 6, {{"preset", "exact"}, {"coefficient", 0}}));
  const Result tiny = dsa(raw(6, 6, {{"preset", "exact"}, {"coefficient", 1e-30}}));
  EXPECT_EQ(out(zero, "loss"), Numbers{0});
  ASSERT_EQ(zero.gradients.size(), 3u);
  for (const Value& value : zero.gradients) EXPECT_EQ(value.high, Numbers(value.high.size(), 0));
  for (const char* name : {"row_loss", "log_mass", "head_sum", "target", "student"}) {
    EXPECT_EQ(out(zero, name), out(tiny, name)) << name;
  }
}
TEST(FieldFaults, E15_a_sparse_backward_costs_its_sparse_support) {  // L = 8, k = 2: 15 pairs of 36
  Problem made = raw(8, 8);
  EXPECT_EQ(dsa(made).backward.evaluations, 2 * 36);  // P of two heads
  Integers last_two;
  for (std::int32_t t = 0; t < 8; ++t) last_two.insert(last_two.end(), {t, t - 1});
  select(made, 8, last_two);
  EXPECT_EQ(dsa(made).backward.evaluations, 2 * 15);
}

// ---- G. sentinels, scatter, state -------------------------------------------------------------------------------
TEST(FieldFaults, G1_G2_J10_minus_one_is_never_an_address) {
  for (const double poison : {nan, inf, 1e300}) {
    Problem made = raw(1, 3);
    select(made, 1, {-1, 1, -1});
    for (const char* name : {"key", "index_k"}) {  // the neighbours: row 0 and the last one
      overwrite_row(made, name, 3, 0, poison);
      overwrite_row(made, name, 3, 2, poison);
    }
    const Result result = dsa(made);
    EXPECT_EQ(out(result, "loss"), Numbers{0});  // one key: both distributions are 1 on it
    near(out(result, "student"), {0, 1, 0}, 0);
    EXPECT_EQ(grad(result, "index_k"), Numbers(15, 0));
  }
}
TEST(FieldFaults, G3_an_index_past_the_keys_is_an_error) {
  for (const std::int32_t index : {3, -2, 1 << 30}) {
    Problem made = raw(1, 3);
    select(made, 1, {0, index});
    EXPECT_EQ(refused_for(made), "in.indices[0, 0, 1]") << index;
  }
}
TEST(FieldFaults, G6_two_queries_share_a_key) {
  Problem both = raw(2, 2, {{"preset", "exact"}, {"mask", {{"causal", false}}}});
  both.options["reduction"] = "sum";
  const auto alone = [&](const char* row) {
    Problem one = both;
    put_in(one, "row_mask", bools({1, 2}, row));
    return grad(dsa(one), "index_k");
  };
  Numbers sum = alone("10");
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += alone("01")[i];
  near(grad(dsa(both), "index_k"), sum, 1e-15);
}
TEST(FieldFaults, G8_repeated_backwards_are_bitwise_equal) {
  const Problem made = raw(7, 7);
  const Result first = dsa(made);
  for (int again = 0; again < 20; ++again) {
    EXPECT_EQ(
        difference(run("dsa_indexer_loss", made,
                       {.precision = Precision::f64, .backward = true, .threads = 1 + again % 3}),
                   first),
        "");
  }
}
TEST(FieldFaults, G11_G12_G13_no_state_between_calls) {  // same shapes, other documents
  const auto chosen = [](Integers lengths) {
    return indices(topk(problem(
        {{"k", 2}, {"keys", "blocks"}, {"m", 2}, {"grid", "document"}},
        {{"scores", filled("z", {1, 8, 3})}, {"cu_seqlens", i32s({3}, std::move(lengths))}})));
  };
  const Integers first = chosen({0, 3, 8}), other = chosen({0, 5, 8});
  EXPECT_NE(first, other);
  EXPECT_EQ(chosen({0, 3, 8}), first);
}
TEST(FieldFaults, G15_windows_stay_inside_their_document) {
  const Numbers mass = window_masses(3, {1, 1, 1, 1, 2, 2, 2, 2});
  EXPECT_NEAR(mass[3], std::log(2.0 + 4 + 8), 1e-14);
  EXPECT_NEAR(mass[4], std::log(16.0), 1e-14);
  EXPECT_NEAR(mass[5], std::log(16.0 + 32), 1e-14);
}

// ---- J. what tests could not see --------------------------------------------------------------------------------
TEST(FieldFaults, J5_an_axis_mix_up_is_an_error) {
  Problem made = raw(6, 6);
  put_in(made, "query", f64s({1, 2, 6, 3}, numbers_of(made.in.at("query"))));
  EXPECT_NE(refused_for(made), "nothing");
}
TEST(FieldFaults, J11_empty_slots_anywhere) {
  const auto with = [](Integers slots) {
    Problem made = raw(1, 6);
    select(made, 1, std::move(slots));
    return dsa(made);
  };
  const Result compact = with({4, 0, 2});
  EXPECT_EQ(difference(with({-1, 4, 0, 2}), compact), "");
  EXPECT_EQ(difference(with({4, -1, 0, -1, 2}), compact), "");
  EXPECT_EQ(difference(with({2, 0, 4, -1, -1, -1}), compact), "");
}
TEST(FieldFaults, J12_J14_the_fixture_sees_selection_scale_and_heads) {
  const Problem made = raw(6, 6);
  Problem scaled = made, one_head = made, chosen = made;
  scaled.options["softmax_scale"] = 0.5;
  put_in(one_head, "query", take(made.in.at("query"), 2, {0}));
  select(chosen, 6, {0, -1, 0, 1, 0, 2, 1, 3, 4, 0, 5, 2});  // k below what is visible
  for (const Problem& changed : {scaled, one_head, chosen}) {
    EXPECT_GT(std::abs(out(dsa(changed), "loss")[0] - out(dsa(made), "loss")[0]), 1e-3);
  }
}

}  // namespace
}  // namespace plumbline
