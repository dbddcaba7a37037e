// properties/indexer_loss_teacher_property.cpp
//
// The teacher and the value: what own and joint teachers have in common, head sums that ranks can add, masses that a
// forward hands to a backward, and the signs and sums that a divergence and its gradient must have.
#include <algorithm>

#include "properties/loss_check.hpp"

namespace plumbline::properties {
namespace {

using support::Distribution;
using support::property;
using Int = std::int64_t;

void count(Distribution& d, const LossCase& loss) {
  d.needs("empty rows", loss.empty_row());
  d.notes("straddling blocks", loss.straddles());
  d.notes("fewer keys than seen", loss.fewer_than_seen());
}

TEST(IndexerLoss, ExactDivergenceIsNotNegative) {
  property([](Distribution& d) {
    LossWish wish;
    wish.presets = false;
    wish.contents.push_back(Contents::wide);
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("straddling blocks", loss.straddles());
    d.needs("fewer keys than seen", loss.fewer_than_seen());
    const Typed<f192> result = evaluate<f192>(loss);
    bool positive = false;
    const f192 rounding = from_double<f192>(-0x1p-150);
    for (const f192& row : result.out("row_loss").values) {
      RC_ASSERT(row > rounding);
      positive = positive || row > from_double<f192>(1e-6);
    }
    d.needs("a row that learns", positive);
  });
}

// A constant on all scores of a row changes no value, so the derivative of the value sums to 0 whatever the target
// sums to; p - t does where both sum to 1.
TEST(IndexerLoss, GradientRowsSumToZero) {
  property([](Distribution& d) {
    LossWish wish;
    wish.raw = false;
    LossCase loss = draw_loss_case(wish);
    count(d, loss);
    const Json options = operation(loss.op()).resolve(loss.problem.options);
    const bool of_value = options["gradient"] == "of_value";
    if (!of_value) loss.problem.options["l1"] = "none";
    d.needs("p - t", !of_value);
    d.needs("a target that does not sum to 1", of_value && options["l1"] != "none");
    const Typed<f192> result = evaluate<f192>(loss);
    const Array<f192>& dz = result.grad("scores");
    for (Int row = 0; row < loss.B * loss.T; ++row) {
      f192 sum(0), largest(1);
      for (const f192& x : dz.row({row / loss.T, row % loss.T}, loss.plane())) {
        sum += x;
        if (magnitude(x) > largest) largest = magnitude(x);
      }
      RC_ASSERT(magnitude(sum) < largest * from_double<f192>(0x1p-150));
    }
  });
}

// One head: window and sink cancel in the normalisation of the head sum.
TEST(IndexerLoss, OneHeadsJointTeacherIsItsOwn) {
  property([](Distribution& d) {
    LossWish wish;
    wish.blocks = wish.joint = true;
    wish.infinite_sinks = false;
    LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("straddling blocks", loss.straddles());
    d.needs("window", loss.window > 0);
    loss.problem.options["l1"] = "none";
    take_in(loss.problem, "query", 2, {0}), take_in(loss.problem, "sink", 0, {0});
    Problem own = loss.problem;
    own.options["teacher"] = "own";
    Typed<f192> expected = evaluate<f192>(loss, own), found = evaluate<f192>(loss);
    for (const char* name : {"log_mass", "head_sum"})
      expected.outputs.erase(name), found.outputs.erase(name);
    holds(agreement(found, expected), high_digits);
  });
}

TEST(IndexerLoss, JointTeacherWithoutWindowAndSinkIsItsOwn) {
  property([](Distribution& d) {
    LossWish wish;
    wish.blocks = wish.joint = true;
    LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("straddling blocks", loss.straddles());
    d.needs("several heads", loss.H > 1);
    loss.problem.options["window"] = 0;
    support::put_in(loss.problem, "sink",
                    support::f64s({loss.H}, Numbers(static_cast<std::size_t>(loss.H), -INFINITY)));
    Problem own = loss.problem;
    own.options["teacher"] = "own";
    same_bits(evaluate_f64(loss, own), evaluate_f64(loss, loss.problem));
  });
}

// Two ranks with half the heads each: their head sums, added, are the whole's; so is everything made from the sum.
TEST(IndexerLoss, HeadSumsOfRanksAddUp) {
  property([](Distribution& d) {
    LossCase loss = draw_loss_case();
    count(d, loss);
    take_in(loss.problem, "key", 2, {0});  // one key head for all: any head may go to either rank
    const Int left = support::pick(0, loss.H);
    d.needs("heads on both ranks", left > 0 && left < loss.H);
    d.needs("joint teacher", loss.joint);
    const auto rank = [&](Int first, Int last) {
      Problem part = loss.problem;
      take_in(part, "query", 2, support::range(first, last)),
          take_in(part, "sink", 0, support::range(first, last));
      return evaluate<f192>(loss, part).out("head_sum");
    };
    Array<f192> sum = left > 0 ? rank(0, left) : Array<f192>({loss.B, loss.T, loss.plane()});
    if (left < loss.H) {
      const Array<f192> other = rank(left, loss.H);
      for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += other.values[i];
    }
    Typed<f192> whole = evaluate<f192>(loss);
    holds(support::agreement(sum, whole.out("head_sum"), "head_sum"), high_digits);

    Problem reduced = loss.problem;
    for (const char* name : {"query", "key", "compressed", "kv", "sink"}) reduced.in.erase(name);
    reduced.options["S"] = loss.S;
    support::put_given(reduced, "head_sum", support::working(sum));
    whole.outputs.erase("log_mass");
    holds(agreement(evaluate<f192>(loss, reduced), whole), high_digits);
  });
}

// A backward from the log-sum-exps a forward saved; then neither window nor sink is needed.
TEST(IndexerLoss, BackwardFromASavedLogMass) {
  property([](Distribution& d) {
    const LossCase loss = draw_loss_case();
    count(d, loss);
    d.needs("joint teacher", loss.joint);
    d.needs("restrict after the softmax", loss.after);
    const Typed<f192> whole = evaluate<f192>(loss);
    Problem saved = loss.problem;
    support::put_given(saved, "log_mass", support::working(whole.out("log_mass")));
    saved.in.erase("kv"), saved.in.erase("sink");
    saved.options["S"] = loss.S;
    holds(agreement(evaluate<f192>(loss, saved), whole), high_digits);
  });
}

// Sinks so large that P underflows in double: the target is a ratio of ratios and must not notice.
TEST(IndexerLoss, RowsUnderHugeSinksDoNotVanish) {
  property([](Distribution& d) {
    LossWish wish;
    wish.blocks = wish.joint = true;
    LossCase loss = draw_loss_case(wish);
    loss.problem.options["l1"] = "none";
    loss.problem.options["teacher"] = "joint";
    const Int heads = std::min<Int>(loss.H, 2);
    take_in(loss.problem, "query", 2, support::range(0, heads));
    support::put_in(loss.problem, "sink",
                    support::f64s({heads}, heads == 1 ? Numbers{800} : Numbers{800, 900}));
    count(d, loss);
    d.needs("two heads", heads == 2);
    Typed<mp50> expected = evaluate<mp50>(loss);
    Typed<f64> found = evaluate<f64>(loss);
    // T itself is e^-800 and below: zero in double, as it should be, but not its logarithm inside.
    found.outputs.erase("head_sum"), expected.outputs.erase("head_sum");
    for (Int row = 0; row < loss.B * loss.T; ++row) {
      const Int b = row / loss.T, t = row % loss.T;
      f64 sum = 0;
      for (const f64 x : found.out("target").row({b, t}, loss.plane())) sum += x;
      RC_ASSERT((loss.count(loss.trained, b, t) > 0) == (sum > 0.5));
    }
    holds(agreement(found, expected), double_digits);
  });
}

// mean_valid counts rows that see a key, mean_real all real rows, mean_all every row.
TEST(IndexerLoss, ReductionsCountTheirRows) {
  property([](Distribution& d) {
    LossWish wish;
    wish.presets = false;
    LossCase loss = draw_loss_case(wish);
    count(d, loss);
    d.needs("rows not real", loss.unreal_row());
    Int real = 0, valid = 0;
    for (Int row = 0; row < loss.B * loss.T; ++row) {
      if (!loss.is_real(row / loss.T, row % loss.T)) continue;
      ++real;
      valid += loss.count(loss.visible, row / loss.T, row % loss.T) > 0 ? 1 : 0;
    }
    const mp50 sum = evaluate<mp50>(loss).out("loss").values[0];
    const auto check = [&](const char* reduction, Int rows) {
      Problem mean = loss.problem;
      mean.options["reduction"] = reduction;
      const mp50 expected = rows == 0 ? mp50(0) : mp50(sum / rows);
      RC_ASSERT(magnitude(mp50(evaluate<mp50>(loss, mean).out("loss").values[0] - expected)) <=
                mp50("1e-45"));
    };
    check("mean_all", loss.B * loss.T);
    check("mean_valid", valid);
    check("mean_real", real);
  });
}

}  // namespace
}  // namespace plumbline::properties
