// properties/mla_attention_property.cpp
//
// What mla_attention guarantees whatever its numbers. Every property is about another way to the
// same result: the formula as it stands, another schedule, the latent form absorbed or not, keys
// named one way or another, a forward pass's saved tensors, finite differences.
#include <limits>

#include "properties/attention_check.hpp"

namespace plumbline::properties {
namespace {

// The key and the value of head h, from the formulas of either form.
struct Rows {
  Array<mp50> query, key, value, latent, pe, weights, bias;
  const AttentionCase& x;
  explicit Rows(const AttentionCase& attention) : x(attention) {
    const auto get = [&](const char* name, Array<mp50>& array) {
      const auto found = x.problem.in.find(name);
      if (found != x.problem.in.end()) array = numbers<mp50>(found->second);
    };
    get("query", query), get("key", key), get("value", value), get("kv_latent", latent),
        get("k_pe", pe);
    get("wkv_b", weights), get("bkv_b", bias);
  }
  mp50 made(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t channel) const {
    mp50 total = bias.given() ? bias({h, channel}) : mp50(0);
    for (std::int64_t r = 0; r < x.rank; ++r) total += latent({b, s, r}) * weights({r, h, channel});
    return total;
  }
  mp50 key_at(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    if (!x.latent) return key({b, s, h * x.Hk / x.H, d});
    return d < x.dn ? made(b, s, h, d) : pe({b, s, d - x.dn});
  }
  mp50 value_at(std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t d) const {
    if (x.latent) return made(b, s, h, x.dn + d);
    return x.has_value ? value({b, s, h * x.Hk / x.H, d}) : key({b, s, h * x.Hk / x.H, d});
  }
};

// The definition without any maximum: in mp50 nothing overflows.
TEST(MlaAttention, IsItsFormula) {
  property([](Distribution& d) {
    AttentionWish wish;
    if (support::chance(40)) wish.duplicates = true;
    const AttentionCase x = draw_attention_case(wish);
    count(d, x);
    d.needs("a key named twice", x.named_twice());
    d.needs("-1 before a used slot", x.gap());
    const Rows rows(x);
    const Typed<mp50> found = attend<mp50>(x.problem, false);
    std::map<std::string, Array<mp50>, std::less<>> expected;
    Array<mp50> output({x.B, x.T, x.H, x.Dv}), lse({x.B, x.T, x.H}),
        top({x.B, x.T, x.H}, -infinity<mp50>());
    const mp50 scale = from_double<mp50>(x.problem.options.value("softmax_scale", 1.0));
    const mp50 ln_base = x.ln_base == 1 ? mp50(1) : mp50(log(mp50(2)));
    for (std::int64_t b = 0; b < x.B; ++b) {
      for (std::int64_t t = 0; t < x.T; ++t) {
        for (std::int64_t h = 0; h < x.H; ++h) {
          const mp50 sink = x.sink.empty() ? -infinity<mp50>()
                                           : from_double<mp50>(x.sink[static_cast<std::size_t>(h)]);
          if (x.keys(b, t) == 0) {
            lse({b, t, h}) = x.counts_sink ? mp50(sink / ln_base) : -infinity<mp50>();
            if (x.empty_lse)
              lse({b, t, h}) = *x.empty_lse == "0"      ? mp50(0)
                               : *x.empty_lse == "+inf" ? infinity<mp50>()
                                                        : -infinity<mp50>();
            continue;
          }
          mp50 sum = 0;
          std::vector<mp50> sums(static_cast<std::size_t>(x.Dv), mp50(0));
          for (std::int64_t s = 0; s < x.S; ++s) {
            const std::int32_t n = x.times[x.cell(b, t, s)];
            if (n == 0) continue;
            mp50 c = 0;
            for (std::int64_t i = 0; i < x.D; ++i)
              c += rows.query({b, t, h, i}) * rows.key_at(b, s, h, i);
            c *= scale;
            if (c > top({b, t, h})) top({b, t, h}) = c;
            const mp50 term = n * exp(c);
            sum += term;
            for (std::int64_t v = 0; v < x.Dv; ++v)
              sums[static_cast<std::size_t>(v)] += term * rows.value_at(b, s, h, v);
          }
          const mp50 all = sum + exp(sink);
          lse({b, t, h}) = log(x.counts_sink ? all : sum) / ln_base;
          for (std::int64_t v = 0; v < x.Dv; ++v)
            output({b, t, h, v}) = sums[static_cast<std::size_t>(v)] / all;
        }
      }
    }
    expected.emplace("output", output);
    expected.emplace("lse", lse);
    expected.emplace("max_logit", top);
    holds(found.outputs, expected);
  });
}

TEST(MlaAttention, EveryScheduleIsOneFunction) {
  property([](Distribution& d) {
    const AttentionCase x = draw_attention_case();
    Problem scheduled = x.problem;
    scheduled.schedule = draw_attention_schedule(x);
    RC_LOG() << "schedule " << scheduled.schedule.dump() << std::endl;
    count(d, x);
    d.needs("ragged chunks", ragged(x, scheduled.schedule));
    d.needs("absorbed", scheduled.schedule.contains("absorbed"));
    const Typed<mp50> whole = attend<mp50>(x.problem);
    holds(attend<mp50>(scheduled), whole);
    holds(attend<f64>(scheduled), whole, double_digits);
    holds(attend<f192>(scheduled), whole);
  });
}

// Scores, output, lse and the gradients through both forms, wkv_b, bkv_b, kv_latent and k_pe among
// them.
TEST(MlaAttention, AbsorbedIsUnabsorbed) {
  property([](Distribution& d) {
    AttentionWish wish;
    wish.latent = true;
    const AttentionCase x = draw_attention_case(wish);
    count(d, x);
    d.needs("bias", x.bias);
    d.needs("no bias", !x.bias);
    Problem absorbed = x.problem;
    absorbed.schedule["absorbed"] = true;
    holds(attend<mp50>(absorbed), attend<mp50>(x.problem));
  });
}

TEST(MlaAttention, ThreadsChangeNoBit) {
  property([](Distribution& d) {
    const AttentionCase x = draw_attention_case();
    Problem problem = x.problem;
    problem.schedule = draw_attention_schedule(x);
    count(d, x);
    const Result one = attend_f64(problem, 1);
    same_bits(attend_f64(problem, 2), one);
    same_bits(attend_f64(problem, 5), one);
  });
}

TEST(MlaAttention, HiddenPlacesChangeNoBit) {
  property([](Distribution& d) {
    const AttentionCase x = draw_attention_case();
    count(d, x);
    d.needs("rows not real", x.unreal_row());
    Problem problem = x.problem;
    problem.schedule = draw_attention_schedule(x);
    const Result clean = attend_f64(problem);
    for (const double poison : {std::numeric_limits<double>::quiet_NaN(), infinity<double>(),
                                -infinity<double>(), 1e300}) {
      RC_LOG() << "poison " << poison << std::endl;
      Problem dirty = poisoned(x, poison);
      dirty.schedule = problem.schedule;
      same_bits(attend_f64(dirty), clean);
    }
  });
}

TEST(MlaAttention, SelectedIsIndices) {
  property([](Distribution& d) {
    AttentionWish wish;
    wish.by_index = true;
    const AttentionCase x = draw_attention_case(wish);
    RC_PRE(x.duplicates != "multiset");
    count(d, x);
    d.needs("-1 before a used slot", x.gap());
    Flags selected(x.visible.size(), 0);
    for (std::size_t i = 0; i < x.index.size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(x.k);
      if (x.index[i] >= 0)
        selected[row * static_cast<std::size_t>(x.S) + static_cast<std::size_t>(x.index[i])] = 1;
    }
    Problem flagged = x.problem;
    flagged.in.erase("indices");
    flagged.options.erase("duplicates");
    support::put_in(flagged, "selected", support::bools({x.B, x.T, x.S}, selected));
    same_bits(attend_f64(flagged), attend_f64(x.problem));
  });
}

// A backward pass that is handed lse, output or both returns what one that makes them does. A given lse is a
// constant, so no cotangent comes through it.
TEST(MlaAttention, BackwardFromSavedTensors) {
  property([](Distribution& d) {
    AttentionCase x = draw_attention_case();
    count(d, x);
    const std::int64_t which = support::pick(1, 3);
    if (which != 2 && x.problem.cot.count("output") > 0) x.problem.cot.erase("lse");
    RC_PRE(which == 2 || x.problem.cot.count("lse") == 0);
    Problem given = x.problem;
    given.schedule = draw_attention_schedule(x);
    const Typed<mp50> whole = attend<mp50>(x.problem);
    d.needs("lse alone", which == 1);
    d.needs("output alone", which == 2);
    d.needs("both", which == 3);
    if (which != 2) support::put_given(given, "lse", support::working(whole.out("lse")));
    if (which != 1) support::put_given(given, "output", support::working(whole.out("output")));
    holds(attend<mp50>(given), whole);
  });
}

// Σ cot·out over real rows, constants and infinite log-sum-exps left out.
mp100 contracted(const AttentionCase& x, const Problem& problem) {
  const Typed<mp100> result = attend<mp100>(problem, false);
  mp100 total = 0;
  for (const char* name : {"output", "lse"}) {
    const auto found = problem.cot.find(name);
    if (found == problem.cot.end()) continue;
    const Array<mp100>& values = result.out(name);
    support::each_index(values.shape, [&](std::size_t flat, Index index) {
      if (!x.is_real(index[0], index[1]) || !is_finite(values.values[flat])) return;
      total += values.values[flat] * Fetch<mp100>::element(found->second, index);
    });
  }
  return total;
}

TEST(MlaAttention, GradientIsTheFiniteDifference) {
  property([](Distribution& d) {
    const AttentionCase x = draw_attention_case();
    count(d, x);
    d.needs("latent", x.latent);
    Problem problem = x.problem;
    problem.schedule = draw_attention_schedule(x);
    const Typed<mp100> analytic = attend<mp100>(problem);
    const mp100 step = ldexp(mp100(1), -100);
    for (const std::string& name : differentiable(x)) {
      const StoredTensor& tensor = x.problem.in.find(name)->second;
      const Array<mp100> at = numbers<mp100>(tensor);
      Array<mp100> up = at, down = at;
      support::Stream stream(x.seed, "direction of " + name);
      mp100 expected = 0, size = 1;
      for (std::size_t i = 0; i < at.values.size(); ++i) {
        if (!is_finite(at.values[i])) continue;
        const mp100 direction = stream.pick(-4, 4);
        up.values[i] += step * direction;
        down.values[i] -= step * direction;
        expected += direction * analytic.grad(name).values[i];
        size += magnitude(mp100(direction * analytic.grad(name).values[i]));
      }
      Problem moved = problem;
      support::put_in(moved, name, support::working(up));
      mp100 difference = contracted(x, moved);
      support::put_in(moved, name, support::working(down));
      difference = (difference - contracted(x, moved)) / (2 * step);
      RC_LOG() << name << ": " << difference.str(40) << ", gradient " << expected.str(40)
               << std::endl;
      RC_ASSERT(support::digits(difference, expected, size) >= high_digits);
    }
  });
}

}  // namespace
}  // namespace plumbline::properties
