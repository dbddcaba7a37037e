// tests/support/loss_problems.hpp
//
// Small problems of the losses, of top-k and of indexer_scores, evaluated in f64 through the registry, for tests
// that compare with numbers worked out by hand.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/error.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline::support {

using Int = std::int64_t;

inline constexpr double inf = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();
inline const double ln2 = std::log(2.0), ln3 = std::log(3.0);

inline Result run(const char* op, const Problem& problem,
                  Evaluation how = {.precision = Precision::f64, .backward = true}) {
  return operation(op).evaluate(problem, how);
}
inline Result csa(const Problem& problem) { return run("csa_indexer_loss", problem); }
inline Result dsa(const Problem& problem) { return run("dsa_indexer_loss", problem); }
inline Result topk(const Problem& problem) {
  return run("topk", problem, {.precision = Precision::f64});
}

inline Numbers out(const Result& result, const char* name) { return output(result, name).high; }
inline Numbers grad(const Result& result, const char* name) { return gradient(result, name).high; }
inline std::vector<std::int32_t> indices(const Result& result) {
  return output(result, "indices").integers;
}
inline Flags selected(const Result& result) { return output(result, "selected").booleans; }
inline void near(const Numbers& found, const Numbers& expected, double tolerance = 1e-14) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}
inline StoredTensor filled(const char* name, Shape shape) {
  const Int count = count_of(shape);
  return f64s(std::move(shape), Stream(3, name).reals(count, Contents::dyadic));
}

// Rows with their target t and scores z given: every row sees every key. `rows` may be fewer than keys.
inline Problem rows_of(Int rows, Int keys, Numbers t, Numbers z,
                       Json options = {{"preset", "exact"}}) {
  options.update({{"S", std::max(rows, keys)}, {"mask", {{"causal", false}}}});
  Problem made = problem(options, {{"scores", f64s({1, rows, keys}, std::move(z))}});
  put_given(made, "target", f64s({1, rows, keys}, std::move(t)));
  return made;
}

// Two heads, two blocks of four tokens, compressed logits (ln 3, 0) and (0, ln 3), window and sink of mass 4 and 12.
inline Problem discriminating(const char* teacher, Json more = Json::object()) {
  Json options = {{"preset", "exact"}, {"teacher", teacher}, {"m", 4}, {"window", 1}, {"S", 8}};
  options.update(more);
  return problem(options, {{"query", f64s({1, 1, 2, 3}, {1, 0, ln2, 0, 1, std::log(6.0)})},
                           {"compressed", f64s({1, 2, 3}, {ln3, 0, 0, 0, ln3, 0})},
                           {"kv", f64s({1, 8, 3}, {0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1,
                                                   0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1})},
                           {"sink", f64s({2}, {ln2, std::log(6.0)})},
                           {"scores", f64s({1, 1, 2}, {0, 0})}});
}

inline Problem raw(Int rows, Int keys, Json options = {{"preset", "exact"}}) {
  return problem(std::move(options), {{"query", filled("q", {1, rows, 2, 3})},
                                      {"key", filled("k", {1, keys, 1, 3})},
                                      {"index_q", filled("iq", {1, rows, 4, 5})},
                                      {"index_k", filled("ik", {1, keys, 5})},
                                      {"index_w", filled("iw", {1, rows, 4})}});
}
inline Result pick_from(Numbers scores, Int k, const char* tie = "lowest_index",
                        Json more = Json::object()) {
  const auto count = static_cast<Int>(scores.size());
  Json options = {{"k", k}, {"tie", tie}, {"S", count}};
  options.update(more);
  return topk(problem(options, {{"scores", f64s({1, 1, count}, std::move(scores))}}));
}
inline double one_score(Numbers dots, Numbers weights,
                        Json options) {  // q·k of each head given by k = 1
  const auto heads = static_cast<Int>(dots.size());
  const Problem made =
      problem(std::move(options), {{"q", f64s({1, 1, heads, 1}, std::move(dots))},
                                   {"k", f64s({1, 1, 1}, {1})},
                                   {"w", f64s({1, 1, heads}, std::move(weights))}});
  return out(run("indexer_scores", made, {.precision = Precision::f64}), "scores")[0];
}
// One of a tensor's rows overwritten.
inline void overwrite_row(Problem& problem, const std::string& name, std::size_t rows,
                          std::size_t row, double value) {
  Numbers values = numbers_of(problem.in.at(name));
  const std::size_t width = values.size() / rows;
  for (std::size_t i = 0; i < width; ++i) values[row * width + i] = value;
  put_in(problem, name, f64s(problem.in.at(name).shape, values));
}

// The same with scores instead of what makes them.
inline Problem scored(Int rows, Int keys, Json options = {{"preset", "exact"}}) {
  options["S"] = keys;
  return problem(std::move(options), {{"query", filled("q", {1, rows, 2, 3})},
                                      {"key", filled("k", {1, keys, 1, 3})},
                                      {"scores", filled("z", {1, rows, keys})}});
}
inline void select(Problem& problem, Int rows, Integers slots) {
  problem.options["sparse"] = true;
  const auto k = static_cast<Int>(slots.size()) / rows;
  put_in(problem, "indices", i32s({1, rows, k}, std::move(slots)));
}

// Which tensor or option a problem of dsa_indexer_loss is refused for.
inline std::string refused_for(const Problem& problem) {
  try {
    dsa(problem);
    return "nothing";
  } catch (const Error& error) {
    return error.where();
  }
}

// The k best blocks of four tokens for rows that stand at tokens first, first + 1, ... of eight.
inline Result blocks_of_four(Int k, Int first, Numbers scores) {
  const auto rows = static_cast<Int>(scores.size()) / 2;
  const Json options = {
      {"k", k}, {"keys", "blocks"}, {"m", 4}, {"S", 8}, {"mask", {{"query_offset", first}}}};
  return topk(problem(options, {{"scores", f64s({1, rows, 2}, std::move(scores))}}));
}

// ln Z of each row where only the window counts: eight tokens, token s weighing 2^s, one block that nobody sees but
// the last row.
inline Numbers window_masses(Int window, Integers segments) {
  Numbers kv;
  for (int s = 0; s < 8; ++s) kv.push_back(s * ln2);
  const Json options = {
      {"preset", "exact"}, {"teacher", "joint_window"}, {"window", window}, {"m", 8}};
  return out(csa(problem(options, {{"query", f64s({1, 8, 1, 1}, Numbers(8, 1))},
                                   {"compressed", f64s({1, 1, 1}, {0})},
                                   {"kv", f64s({1, 8, 1}, kv)},
                                   {"scores", f64s({1, 8, 1}, Numbers(8, 0))},
                                   {"segment_ids", i32s({1, 8}, std::move(segments))}})),
             "log_mass");
}

}  // namespace plumbline::support
