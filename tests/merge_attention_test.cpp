// merge_attention where the answer is known. Properties (splits merged are the whole) stand in
// properties/merge_attention_property.cpp.
#include "tests/attention_testing.hpp"

namespace plumbline {
namespace {

using namespace attention_testing;

Problem merge_problem(const Json& options, const Numbers& lse, const Numbers& outputs) {
  const auto P = static_cast<std::int64_t>(lse.size());
  return support::problem(
      options, {{"outputs", f64s({P, 1, 1, 1, 1}, outputs)}, {"lse", f64s({P, 1, 1, 1}, lse)}},
      {{"output", f64s({1, 1, 1, 1}, {1})}, {"lse", f64s({1, 1, 1}, {2})}});
}

// Two parts of masses e^0 = 1 and e^ln3 = 3, in base 2: 0 and log2 3.
TEST(MergeAttention, ByHand) {
  Array<mp50> lse({2, 1, 1, 1}, mp50(0));
  lse.values[1] = ln(3) / ln(2);
  Problem p = merge_problem({{"lse_base", 2}}, {0, 0}, {8, 4});
  put_in(p, "lse", working(lse));
  Typed<mp50> r = typed<merge_attention::Op>(p);
  expect_near(r.out("output").values[0], mp50(5));
  expect_near(r.out("lse").values[0], mp50(2));
  expect_near(r.grad("outputs").values[0], mp50(1) / 4);
  expect_near(r.grad("outputs").values[1], mp50(3) / 4);
  // d lse_p = ln 2·w_p (g·o_p − g·o) + 2 w_p
  expect_near(r.grad("lse").values[0], ln(2) * 3 / 4 + mp50(1) / 2);
  expect_near(r.grad("lse").values[1], ln(2) * -3 / 4 + mp50(3) / 2);

  Array<mp50> sink({1}, ln(4));
  put_in(p, "sink", working(sink));
  p.options["lse_includes_sink"] = true;
  r = typed<merge_attention::Op>(p);
  expect_near(r.out("output").values[0], mp50(5) / 2);
  expect_near(r.out("lse").values[0], mp50(3));
  expect_near(r.grad("sink").values[0], mp50(2 / ln(2) - mp50(5) / 2) / 2);
}

TEST(MergeAttention, A12PartWithoutKeysIsNotRead) {
  for (const bool plus : {false, true}) {
    const double empty = plus ? inf : -inf;
    Json options = Json::object();
    if (plus) options["empty_lse"] = "+inf";
    const Result r =
        evaluate(merge_problem(options, {empty, 1, empty}, {nan, 6, inf}), "merge_attention");
    expect_numbers(output(r, "output"), {6});
    expect_numbers(output(r, "lse"), {1});
    expect_numbers(gradient(r, "outputs"), {0, 1, 0});
    expect_numbers(gradient(r, "lse"), {0, 2, 0});
    const Result none =
        evaluate(merge_problem(options, {empty, empty}, {nan, nan}), "merge_attention");
    expect_numbers(output(none, "output"), {0});
    expect_numbers(output(none, "lse"), {empty});
    expect_numbers(gradient(none, "lse"), {0, 0});
    // The other infinity is somebody else's convention.
    expect_error(
        [&] {
          evaluate(merge_problem(options, {-empty, 1}, {0, 6}), "merge_attention");
        },
        "in.lse[0, 0, 0, 0]", "empty_lse");
  }
  expect_error(
      [] {
        evaluate(merge_problem({{"empty_lse", 0}}, {0, 1}, {0, 6}), "merge_attention");
      },
      "option empty_lse");
}

TEST(MergeAttention, InfiniteSinks) {
  Problem p = merge_problem(Json::object(), {1, 1}, {2, 6});
  put_in(p, "sink", f64s({1}, {inf}));
  const Result all = evaluate(p, "merge_attention");
  expect_numbers(output(all, "output"), {0});
  expect_numbers(output(all, "lse"), {1 + std::log(2)});
  expect_numbers(gradient(all, "lse"), {1, 1});
  expect_numbers(gradient(all, "sink"), {0});
  put_in(p, "sink", f64s({1}, {-inf}));
  expect_numbers(output(evaluate(p, "merge_attention"), "output"), {4});
}

}  // namespace
}  // namespace plumbline
