// properties/indexer_loss_property.cpp
//
// What both indexer losses guarantee whatever their numbers: a schedule, a precision and the number of threads change
// the work only, and what lies in hidden places is not there.
#include <limits>

#include "properties/loss_check.hpp"

namespace plumbline::properties {
namespace {

using support::Distribution;
using support::property;

void count(Distribution& d, const LossCase& loss) {
  d.needs("empty rows", loss.empty_row());
  d.needs("straddling blocks", loss.straddles());
  d.needs("fewer keys than seen", loss.fewer_than_seen());
  d.needs("-1 before a used slot", loss.gap());
  d.needs("rows not real", loss.unreal_row());
  d.notes("no row", loss.B * loss.T == 0);
  d.notes("no key", loss.K == 0);
  d.notes("tokens", !loss.blocks);
}

TEST(IndexerLoss, EveryScheduleIsOneFunction) {
  property([](Distribution& d) {
    const LossCase loss = draw_loss_case();
    Problem scheduled = loss.problem;
    scheduled.schedule = draw_schedule(loss);
    RC_LOG() << "schedule " << scheduled.schedule.dump() << std::endl;
    count(d, loss);
    d.needs("ragged chunks", ragged(loss, scheduled.schedule));
    d.needs("no barrier", !scheduled.schedule.value("barrier", true));
    const Typed<mp50> whole = evaluate<mp50>(loss);
    holds(agreement(evaluate<mp50>(loss, scheduled), whole), high_digits);
    holds(agreement(evaluate<f64>(loss, scheduled), whole), double_digits);
  });
}

TEST(IndexerLoss, F192AgreesWithMp50) {
  property([](Distribution& d) {
    LossWish wish;
    wish.contents.push_back(Contents::wide);
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    holds(agreement(evaluate<f192>(loss), evaluate<mp50>(loss)), high_digits);
  });
}

TEST(IndexerLoss, ThreadsChangeNoBit) {
  property([](Distribution& d) {
    const LossCase loss = draw_loss_case();
    Problem problem = loss.problem;
    problem.schedule = draw_schedule(loss);
    count(d, loss);
    const Result one = evaluate_f64(loss, problem, 1);
    same_bits(evaluate_f64(loss, problem, 2), one);
    same_bits(evaluate_f64(loss, problem, 5), one);
  });
}

TEST(IndexerLoss, HiddenPlacesChangeNoBit) {
  property([](Distribution& d) {
    const LossCase loss = draw_loss_case();
    count(d, loss);
    Problem problem = loss.problem;
    problem.schedule = draw_schedule(loss);
    const Result clean = evaluate_f64(loss, problem);
    for (const double poison :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(), 1e300}) {
      RC_LOG() << "poison " << poison << std::endl;
      Problem dirty = poisoned(loss, poison);
      dirty.schedule = problem.schedule;
      same_bits(evaluate_f64(loss, dirty), clean);
    }
  });
}

// Also target, student and head_sum; and what SPEC says of rows that are not real and of empty ones.
TEST(IndexerLoss, NothingOutsideTheSet) {
  property([](Distribution& d) {
    const LossCase loss = draw_loss_case();
    count(d, loss);
    const Typed<f64> result = evaluate<f64>(loss);
    const auto zero = [](const Array<f64>& array, std::size_t i) {
      RC_ASSERT(array.values[i] == 0.0);
    };
    for (std::int64_t b = 0; b < loss.B; ++b) {
      for (std::int64_t t = 0; t < loss.T; ++t) {
        const std::int64_t trained = loss.count(loss.trained, b, t),
                           seen = loss.count(loss.visible, b, t);
        RC_ASSERT((result.flags.at("row_valid")({b, t}) != 0) == (loss.is_real(b, t) && seen > 0));
        if (trained == 0) RC_ASSERT(result.out("row_loss")({b, t}) == 0.0);
        for (std::int64_t h = 0; h < loss.H && !loss.is_real(b, t); ++h) {
          RC_ASSERT(result.out("log_mass")({b, t, h}) == -infinity<f64>());
        }
        for (std::int64_t place = 0; place < loss.plane(); ++place) {
          if (loss.key_at(b, t, place) >= 0) continue;
          const auto i = static_cast<std::size_t>((b * loss.T + t) * loss.plane() + place);
          for (const char* name : {"head_sum", "target", "student"}) zero(result.out(name), i);
          if (!loss.raw) zero(result.grad("scores"), i);
        }
        for (const char* name : {"index_q", "index_w"}) {
          if (!loss.raw || trained > 0) continue;
          const Array<f64>& array = result.grad(name);
          const auto width = static_cast<std::int64_t>(array.values.size()) / (loss.B * loss.T);
          for (const f64 x : array.row({b, t}, width)) RC_ASSERT(x == 0.0);
        }
      }
      for (std::int64_t key = 0; key < loss.K && loss.raw; ++key) {
        bool used = false;
        for (std::int64_t t = 0; t < loss.T; ++t) used = used || loss.trains(b, t, key);
        for (const f64 x : result.grad("index_k").row({b, key}, loss.e))
          RC_ASSERT(used || x == 0.0);
      }
    }
  });
}

// Scores handed in, or made inside from index_q, index_k and index_w: one function and, through the scores'
// gradient, one derivative.
TEST(IndexerLoss, RawIndexerIsScoresBefore) {
  property([](Distribution& d) {
    LossWish wish;
    wish.raw = true;
    wish.slots = false;
    const LossCase loss = draw_loss_case(wish);
    count(d, loss);
    const Typed<f192> raw = evaluate<f192>(loss);

    const Json& options = loss.problem.options;
    Problem scores;
    scores.options = {
        {"score_scale",
         options.value("score_scale", options["preset"] == "tilelang" ? "dim" : "heads_and_dim")},
        {"relu", options.value("relu", true)}};
    for (const char* letter : {"q", "k", "w"}) {
      support::put_in(scores, letter, loss.problem.in.find(std::string("index_") + letter)->second);
    }
    const Typed<f192> made = indexer_scores_f192(scores, false);
    Problem two_steps = loss.problem;
    for (const char* name : {"index_q", "index_k", "index_w"}) two_steps.in.erase(name);
    support::put_in(two_steps, "scores", support::working(made.out("scores")));
    const Typed<f192> apart = evaluate<f192>(loss, two_steps);
    holds(agreement(apart.outputs, raw.outputs), high_digits);

    support::put_cot(scores, "scores", support::working(apart.grad("scores")));
    const Typed<f192> back = indexer_scores_f192(scores, true);
    for (const char* letter : {"q", "k", "w"}) {
      const std::string name = std::string("index_") + letter;
      holds(support::agreement(back.grad(letter), raw.grad(name), name, 1), high_digits);
    }
  });
}

}  // namespace
}  // namespace plumbline::properties
