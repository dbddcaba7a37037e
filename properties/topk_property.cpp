// properties/topk_property.cpp
//
// Top-k against a selection made one maximum at a time, and the parts of its contract on their own: which set, which
// order, -1 after the visible keys, NaN last, ties by number, the same bits on any number of threads, nothing hidden.
#include <algorithm>

#include "properties/loss_check.hpp"

namespace plumbline::properties {
namespace {

using support::Distribution;
using support::property;
using Int = std::int64_t;
using List = std::vector<Int>;

struct TopkCase {
  LossCase mask;  // rows, keys and who sees whom
  Numbers scores;
  Int k = 0;
  bool threshold = false;
  Problem problem;
};

// Scores with many ties: a plateau of zeros of both signs, infinities, and NaN.
TopkCase draw() {
  TopkCase x;
  LossWish wish;
  wish.sparse = false;
  x.mask = draw_loss_case(wish);
  const LossCase& mask = x.mask;
  support::Stream stream(mask.seed, "topk");
  const Int ties = support::one_of<Int>({1, 1, 0, 1, 2});
  for (Int i = 0; i < mask.B * mask.T * mask.K; ++i) {
    const Int kind = stream.pick(0, 19);
    const double plain =
        ties == 0 ? stream.real(Contents::bits) : static_cast<double>(stream.pick(-1, ties));
    x.scores.push_back(kind == 0   ? std::nan("")
                       : kind == 1 ? INFINITY
                       : kind == 2 ? -INFINITY
                       : kind == 3 ? -0.0
                                   : plain);
  }
  x.k = support::chance(60) ? support::pick(0, mask.K / 2) : support::pick(0, mask.K + 2);
  x.threshold = support::chance(50);
  const Json& given = mask.problem.options;
  x.problem.options = {
      {"k", x.k}, {"tie", x.threshold ? "threshold" : "lowest_index"}, {"mask", given["mask"]}};
  if (mask.blocks) x.problem.options.update({{"keys", "blocks"}, {"m", mask.m}, {"S", mask.S}});
  if (mask.document_grid) x.problem.options["grid"] = "document";
  for (const char* name :
       {"row_index", "segment_ids", "positions", "cu_seqlens", "valid", "mask", "row_mask"}) {
    const auto found = mask.problem.in.find(name);
    if (found != mask.problem.in.end()) support::put_in(x.problem, name, found->second);
  }
  support::put_in(x.problem, "scores", support::f64s({mask.B, mask.T, mask.K}, x.scores));
  RC_LOG() << "topk options " << x.problem.options.dump() << std::endl;
  return x;
}

Result select(const Problem& problem, int threads = 1, Precision precision = Precision::f64) {
  return operation("topk").evaluate(problem,
                                    {.precision = precision, .forward = true, .threads = threads});
}
double score(const TopkCase& x, Int b, Int t, Int key) { return x.scores[x.mask.cell(b, t, key)]; }
// Strictly better; NaN is worse than all numbers and equal to NaN.
bool beats(double x, double y) { return !std::isnan(x) && (std::isnan(y) || x > y); }

TEST(Topk, AgreesWithOneMaximumAtATime) {
  property([](Distribution& d) {
    const TopkCase x = draw();
    const LossCase& mask = x.mask;
    const Result result = select(x.problem);
    const Value& indices = support::output(result, "indices");
    const Value& selected = support::output(result, "selected");
    bool below = false, above = false, tied = false, nan = false, empty = false;
    for (Int row = 0; row < mask.B * mask.T; ++row) {
      const Int b = row / mask.T, t = row % mask.T;
      List left;
      for (Int key = 0; key < mask.K; ++key) {
        if (mask.is_real(b, t) && mask.sees(b, t, key)) left.push_back(key);
      }
      empty = empty || left.empty();
      below = below || x.k < static_cast<Int>(left.size());
      above = above || x.k > static_cast<Int>(left.size());
      Flags expected(static_cast<std::size_t>(mask.K), 0);
      double last = std::nan("");
      for (Int slot = 0; slot < x.k; ++slot) {
        auto best = left.begin();
        for (auto i = left.begin(); i != left.end(); ++i) {
          if (beats(score(x, b, t, *i), score(x, b, t, *best)))
            best = i;  // the first of equals stays
        }
        const Int found = indices.integers[static_cast<std::size_t>(row * x.k + slot)];
        RC_ASSERT(found == (left.empty() ? -1 : *best));
        if (left.empty()) continue;
        last = score(x, b, t, *best);
        nan = nan || std::isnan(last);
        expected[static_cast<std::size_t>(*best)] = 1;
        left.erase(best);
      }
      for (const Int key : left) {  // not among the first k
        const bool equal = x.k > 0 && !beats(last, score(x, b, t, key));
        tied = tied || equal;
        if (x.threshold && equal) expected[static_cast<std::size_t>(key)] = 1;
      }
      for (Int key = 0; key < mask.K; ++key) {
        RC_ASSERT(selected.booleans[mask.cell(b, t, key)] ==
                  expected[static_cast<std::size_t>(key)]);
      }
    }
    d.needs("k < visible", below);
    d.needs("k > visible", above);
    d.needs("a tie at the k-th", tied);
    d.needs("NaN selected", nan);
    d.needs("empty rows", empty);
    d.needs("straddling blocks", mask.straddles());
    d.notes("threshold", x.threshold);
    d.notes("k = 0", x.k == 0);
  });
}

TEST(Topk, EveryPrecisionAndThreadSelectsTheSame) {
  property([](Distribution& d) {
    const TopkCase x = draw();
    const Result one = select(x.problem);
    same_bits(select(x.problem, 2), one);
    same_bits(select(x.problem, 1, Precision::f192), one);
    same_bits(select(x.problem, 1, Precision::mp50), one);
    d.needs("several rows", x.mask.B * x.mask.T > 2);
  });
}

TEST(Topk, HiddenScoresSelectNothing) {
  property([](Distribution& d) {
    TopkCase x = draw();
    const Result clean = select(x.problem);
    bool hidden = false;
    for (const double poison : {std::nan(""), double{INFINITY}, 1e300}) {
      Numbers scores = x.scores;
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const bool shown =
            x.mask.visible[i] != 0 && x.mask.real[i / static_cast<std::size_t>(x.mask.K)] != 0;
        if (!shown) scores[i] = poison;
        hidden = hidden || !shown;
      }
      support::put_in(x.problem, "scores", support::f64s({x.mask.B, x.mask.T, x.mask.K}, scores));
      same_bits(select(x.problem), clean);
    }
    d.needs("a hidden score", hidden);
  });
}

// Larger k only adds: the first slots and the set stay.
TEST(Topk, MoreSlotsKeepTheFirstOnes) {
  property([](Distribution& d) {
    const TopkCase x = draw();
    Problem wider = x.problem;
    const Int more = x.k + support::pick(1, 3);
    wider.options["k"] = more;
    const Result few = select(x.problem), many = select(wider);
    const Value &a = support::output(few, "indices"), &b = support::output(many, "indices");
    for (Int row = 0; row < x.mask.B * x.mask.T; ++row) {
      for (Int slot = 0; slot < x.k; ++slot) {
        RC_ASSERT(a.integers[static_cast<std::size_t>(row * x.k + slot)] ==
                  b.integers[static_cast<std::size_t>(row * more + slot)]);
      }
    }
    for (std::size_t i = 0; i < support::output(few, "selected").booleans.size(); ++i) {
      RC_ASSERT(support::output(few, "selected").booleans[i] <=
                support::output(many, "selected").booleans[i]);
    }
    d.needs("some slots", x.k > 0);
  });
}

// The selection of top-k is what a sparse loss takes, by index, by set, and in slots: one loss.
TEST(Topk, FeedsTheSparseLoss) {
  property([](Distribution& d) {
    TopkCase x = draw();
    LossCase loss = x.mask;
    x.problem.options["tie"] = "lowest_index";
    const Result chosen = select(x.problem);
    loss.problem.options["sparse"] = true;
    Problem by_set = loss.problem, by_index = loss.problem;
    support::put_in(
        by_set, "selected",
        support::bools({loss.B, loss.T, loss.K}, support::output(chosen, "selected").booleans));
    support::put_in(
        by_index, "indices",
        support::i32s({loss.B, loss.T, x.k}, support::output(chosen, "indices").integers));
    same_bits(evaluate_f64(loss, by_index), evaluate_f64(loss, by_set));
    d.needs("some slots", x.k > 0 && loss.K > 0);
  });
}

}  // namespace
}  // namespace plumbline::properties
