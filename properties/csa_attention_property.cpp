// properties/csa_attention_property.cpp
//
// What csa_attention guarantees whatever its numbers, and other ways to the same result: the formula as it stands,
// mla_attention over tokens and blocks side by side, other schedules, other orders of heads and slots.
#include <limits>
#include <numeric>

#include "properties/csa_attention_check.hpp"

namespace plumbline::properties {
namespace {

using Int = std::int64_t;

// The definition without any maximum: in mp50 nothing overflows.
TEST(CsaAttention, IsItsFormula) {
  property([](Distribution& d) {
    const CsaCase x = draw_csa_case();
    count(d, x);
    const Array<mp50> query = numbers<mp50>(x.problem.in.at("query")),
                      kv = numbers<mp50>(x.problem.in.at("kv")),
                      blocks = numbers<mp50>(x.problem.in.at("compressed"));
    Array<mp50> output({x.B, x.T, x.H, x.D}), lse({x.B, x.T, x.H}),
        top({x.B, x.T, x.H}, -infinity<mp50>());
    const mp50 scale = from_double<mp50>(x.problem.options.value("softmax_scale", 1.0));
    const mp50 ln_base = x.base_two ? mp50(log(mp50(2))) : mp50(1);
    for (Int i = 0; i < x.B * x.T * x.H; ++i) {
      const Int b = i / (x.T * x.H), t = i / x.H % x.T, h = i % x.H;
      const mp50 sink = x.sink.empty() ? -infinity<mp50>()
                                       : from_double<mp50>(x.sink[static_cast<std::size_t>(h)]);
      mp50 sum = 0;
      std::vector<mp50> sums(static_cast<std::size_t>(x.D), mp50(0));
      const auto add = [&](const Array<mp50>& from, Int key, int n) {
        if (n == 0) return;
        mp50 c = 0;
        for (Int e = 0; e < x.D; ++e) c += query({b, t, h, e}) * from({b, key, e});
        c *= scale;
        if (c > top({b, t, h})) top({b, t, h}) = c;
        sum += n * exp(c);
        for (Int e = 0; e < x.D; ++e)
          sums[static_cast<std::size_t>(e)] += n * exp(c) * from({b, key, e});
      };
      for (Int s = 0; s < x.S; ++s) add(kv, s, x.in_window(b, t, s) ? 1 : 0);
      for (Int j = 0; j < x.N; ++j) add(blocks, j, x.times[x.cell(b, t, j)]);
      const mp50 all = sum + exp(sink);
      lse({b, t, h}) = x.counts_sink ? mp50(log(all) / ln_base) : mp50(log(sum) / ln_base);
      if (sum == 0) lse({b, t, h}) = x.counts_sink ? mp50(sink / ln_base) : -infinity<mp50>();
      for (Int e = 0; e < x.D && sum > 0; ++e)
        output({b, t, h, e}) = sums[static_cast<std::size_t>(e)] / all;
    }
    const std::map<std::string, Array<mp50>, std::less<>> expected{
        {"output", output}, {"lse", lse}, {"max_logit", top}};
    holds(attend<mp50>(x.problem, false).outputs, expected);
  });
}

// Tokens and blocks as the S + N keys of one mla_attention, whose mask `valid` says all that this operation's rules
// say. Every output and every gradient is the same.
TEST(CsaAttention, IsMlaAttentionOverTokensAndBlocks) {
  property([](Distribution& d) {
    CsaWish wish;
    const CsaCase x = draw_csa_case(wish);
    RC_PRE(x.duplicates != "multiset");
    count(d, x);
    const Typed<mp50> found = attend<mp50>(x.problem), other = attend_as_mla(x);
    holds(found.outputs, other.outputs);
    holds(found.gradients, other.gradients);
  });
}

TEST(CsaAttention, EmptySelectionIsTheSlidingWindow) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.selects = false;
    CsaCase x = draw_csa_case(wish);
    d.needs("a window longer than the sequence", x.S > 0 && x.W > x.S);
    d.needs("a document boundary inside a window", x.cut_window());
    std::fill(x.times.begin(), x.times.end(), 0);
    const Int k = support::pick(0, 3);
    support::put_in(
        x.problem, "indices",
        support::i32s({x.B, x.T, k}, Integers(static_cast<std::size_t>(x.B * x.T * k), -1)));
    d.needs("empty rows", x.empty_row());
    d.needs("only empty slots", k > 0);
    const Typed<mp50> found = attend<mp50>(x.problem);
    // The window is all that is visible: mla_attention over tokens, with the window in `valid`.
    Problem window;
    window.options = mla_options(x);
    window.options["mask"] = {{"causal", support::chance(50)}};
    window.outputs = {"all"};
    Flags valid;
    for (Int b = 0; b < x.B; ++b) {
      for (Int t = 0; t < x.T; ++t) {
        for (Int s = 0; s < x.S; ++s) valid.push_back(x.in_window(b, t, s) ? 1 : 0);
      }
    }
    for (const char* name : {"query", "sink", "row_index"}) {
      if (x.problem.in.count(name) > 0) support::put_in(window, name, x.problem.in.at(name));
    }
    support::put_in(window, "key", with_axis(x.problem.in.at("kv"), 2));
    support::put_in(window, "valid", support::bools({x.B, x.T, x.S}, valid));
    support::put_in(window, "row_mask", support::bools({x.B, x.T}, x.real));
    window.cot = x.problem.cot;
    const Typed<mp50> other = evaluate_mla(window);
    holds(found.outputs, other.outputs);
    Array<mp50> key = other.grad("key");
    key.shape = {x.B, x.S, x.D};
    const Array<mp50> none({x.B, x.N, x.D});
    std::map<std::string, Array<mp50>, std::less<>> expected{
        {"query", other.grad("query")}, {"kv", key}, {"compressed", none}};
    if (!x.sink.empty()) expected.emplace("sink", other.grad("sink"));
    holds(found.gradients, expected);
  });
}

TEST(CsaAttention, AllBlocksSelectedIsDense) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.selects = false;
    const CsaCase x = draw_csa_case(wish);
    count(d, x);
    const Result dense = attend_f64(x.problem);
    Problem named = x.problem;
    support::put_in(named, "selected", support::bools({x.B, x.T, x.N}, Flags(x.visible.size(), 1)));
    same_bits(attend_f64(named), dense);
    named.in.erase("selected");
    Integers index;  // every block, in any order, with empty slots between
    support::Stream stream(x.seed, "all");
    const Int k = x.N + support::pick(0, 2);
    d.needs("more slots than blocks", k > x.N);
    for (Int row = 0; row < x.B * x.T; ++row) {
      for (const Int j : stream.shuffled(k))
        index.push_back(j < x.N ? static_cast<std::int32_t>(j) : -1);
    }
    support::put_in(named, "indices", support::i32s({x.B, x.T, k}, index));
    same_bits(attend_f64(named), dense);
  });
}

TEST(CsaAttention, ASinkOfMinusInfinityIsNone) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.sink = false;
    const CsaCase x = draw_csa_case(wish);
    count(d, x);
    Problem with = x.problem;
    support::put_in(with, "sink",
                    support::f64s({x.H}, Numbers(static_cast<std::size_t>(x.H), -INFINITY)));
    const Result found = attend_f64(with);
    RC_ASSERT(support::difference(found.outputs, attend_f64(x.problem).outputs).empty());
    for (const double g : support::gradient(found, "sink").high) RC_ASSERT(g == 0);
    for (const char* name : {"query", "kv", "compressed"}) {
      RC_ASSERT(support::gradient(found, name).high ==
                support::gradient(attend_f64(x.problem), name).high);
    }
  });
}

TEST(CsaAttention, HeadsAndSlotsHaveNoOrder) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.by_index = true;
    const CsaCase x = draw_csa_case(wish);
    count(d, x);
    support::Stream stream(x.seed, "order");
    const std::vector<Int> heads = stream.shuffled(x.H);
    d.needs("heads in another order", !std::is_sorted(heads.begin(), heads.end()));
    Problem moved = x.problem;
    const auto permute = [&](Tensors& tensors, const char* prefix, const char* name,
                             std::size_t axis) {
      if (tensors.count(name) > 0)
        support::put(tensors, prefix, name, support::take(tensors.at(name), axis, heads));
    };
    permute(moved.in, "in.", "query", 2), permute(moved.in, "in.", "sink", 0);
    permute(moved.cot, "cot.", "output", 2), permute(moved.cot, "cot.", "lse", 2);
    Integers index = x.index;
    for (Int row = 0; row < x.B * x.T; ++row) {
      const std::vector<Int> order = stream.shuffled(x.k);
      for (Int slot = 0; slot < x.k; ++slot)
        index[static_cast<std::size_t>(row * x.k + slot)] =
            x.index[static_cast<std::size_t>(row * x.k + order[static_cast<std::size_t>(slot)])];
    }
    support::put_in(moved, "indices", support::i32s({x.B, x.T, x.k}, index));
    const Typed<f64> whole = attend<f64>(x.problem), found = attend<f64>(moved);
    const auto same = [&](const Array<f64>& a, const Array<f64>& b, Int width) {
      for (std::size_t i = 0; i < a.values.size(); ++i) {
        const auto flat = static_cast<Int>(i);
        const Int h = flat / width % x.H, from = heads[static_cast<std::size_t>(h)];
        const double u = a.values[i],
                     v = b.values[static_cast<std::size_t>(flat + (from - h) * width)];
        RC_ASSERT(u == v);
      }
    };
    same(found.out("output"), whole.out("output"), x.D);
    same(found.out("lse"), whole.out("lse"), 1);
    same(found.grad("query"), whole.grad("query"), x.D);
    if (!x.sink.empty()) same(found.grad("sink"), whole.grad("sink"), 1);
    // Summed over heads in another order: the same but for rounding.
    for (const char* name : {"kv", "compressed"}) {
      const Agreement agreement = support::agreement(found.grad(name), whole.grad(name), name, 1);
      RC_ASSERT(agreement.digits >= double_digits);
    }
  });
}

TEST(CsaAttention, SelectedIsIndices) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.by_index = true;
    const CsaCase x = draw_csa_case(wish);
    RC_PRE(x.duplicates != "multiset");
    count(d, x);
    Flags selected(x.visible.size(), 0);
    for (std::size_t i = 0; i < x.index.size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(x.k);
      if (x.index[i] >= 0)
        selected[row * static_cast<std::size_t>(x.N) + static_cast<std::size_t>(x.index[i])] = 1;
    }
    Problem flagged = x.problem;
    flagged.in.erase("indices");
    flagged.options.erase("duplicates");
    support::put_in(flagged, "selected", support::bools({x.B, x.T, x.N}, selected));
    same_bits(attend_f64(flagged), attend_f64(x.problem));
  });
}

// A mean of the row's values, and of 0 where there is a sink: no channel leaves their range.
TEST(CsaAttention, OutputLiesWithinItsValues) {
  property([](Distribution& d) {
    const CsaCase x = draw_csa_case();
    count(d, x);
    const Array<mp50> kv = numbers<mp50>(x.problem.in.at("kv")),
                      blocks = numbers<mp50>(x.problem.in.at("compressed"));
    const Array<mp50> output = attend<mp50>(x.problem, false).out("output");
    const mp50 slack = ldexp(mp50(1), -150);
    for (Int i = 0; i < x.B * x.T * x.H * x.D; ++i) {
      const Int b = i / (x.T * x.H * x.D), t = i / (x.H * x.D) % x.T, e = i % x.D;
      const mp50 value = output.values[static_cast<std::size_t>(i)];
      bool any = false;
      mp50 low = 0, high = 0;
      const auto take = [&](const mp50& v) {
        if (!any || v < low) low = v;
        if (!any || v > high) high = v;
        any = true;
      };
      for (Int s = 0; s < x.S; ++s) {
        if (x.in_window(b, t, s)) take(kv({b, s, e}));
      }
      for (Int j = 0; j < x.N; ++j) {
        if (x.times[x.cell(b, t, j)] > 0) take(blocks({b, j, e}));
      }
      if (!any || !x.sink.empty()) take(0);
      RC_ASSERT(value >= low - slack && value <= high + slack);
    }
  });
}

TEST(CsaAttention, EveryScheduleIsOneFunction) {
  property([](Distribution& d) {
    const CsaCase x = draw_csa_case();
    Problem scheduled = x.problem;
    scheduled.schedule = draw_csa_schedule(x);
    RC_LOG() << "schedule " << scheduled.schedule.dump() << std::endl;
    count(d, x);
    d.needs("ragged chunks", ragged(x, scheduled.schedule));
    const Typed<mp50> whole = attend<mp50>(x.problem);
    holds(attend<mp50>(scheduled), whole);
    holds(attend<f192>(scheduled), whole);
    holds(attend<f64>(scheduled), whole, double_digits);
  });
}

// A backward pass that is handed lse, output or both returns what one that makes them does.
TEST(CsaAttention, BackwardFromSavedTensors) {
  property([](Distribution& d) {
    CsaCase x = draw_csa_case();
    count(d, x);
    if (x.problem.cot.count("output") == 0) return;
    x.problem.cot.erase("lse");  // a given lse is a constant
    Problem given = x.problem;
    given.schedule = draw_csa_schedule(x);
    const Typed<mp50> whole = attend<mp50>(x.problem);
    const Int which = support::pick(1, 3);
    if (which != 2) support::put_given(given, "lse", support::working(whole.out("lse")));
    if (which != 1) support::put_given(given, "output", support::working(whole.out("output")));
    holds(attend<mp50>(given), whole);
  });
}

}  // namespace
}  // namespace plumbline::properties
