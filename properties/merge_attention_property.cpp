// properties/merge_attention_property.cpp
//
// Keys split, attended to part by part and merged are the whole, gradients included; and the
// gradient of merge_attention alone is its finite difference.
#include "properties/attention_check.hpp"

namespace plumbline::properties {
namespace {

// Keys split in parts, each attended to on its own and merged, gradients pulled back through both.
TEST(MergeAttention, PartsAreTheWhole) {
  property([](Distribution& d) {
    AttentionWish wish;
    wish.unreal_rows = false;
    wish.duplicates = false;
    wish.infinite_lse = false;
    const AttentionCase x = draw_attention_case(wish);
    count(d, x);
    const Typed<mp50> whole = attend<mp50>(x.problem);
    const std::int64_t parts = support::pick(1, 4);
    support::Stream stream(x.seed, "parts");
    std::vector<Flags> selected(static_cast<std::size_t>(parts), Flags(x.visible.size(), 0));
    for (std::size_t i = 0; i < x.visible.size(); ++i) {
      selected[static_cast<std::size_t>(stream.pick(0, parts - 1))][i] = x.times[i] > 0 ? 1 : 0;
    }
    std::vector<Problem> problems;
    Problem merged;
    Array<mp50> outputs({parts, x.B, x.T, x.H, x.Dv}), lses({parts, x.B, x.T, x.H});
    bool dead_part = false;
    for (std::int64_t p = 0; p < parts; ++p) {
      Problem part = x.problem;
      for (const char* name : {"indices", "selected", "sink"}) part.in.erase(name);
      part.options.erase("lse_includes_sink");
      support::put_in(part, "selected",
                      support::bools({x.B, x.T, x.S}, selected[static_cast<std::size_t>(p)]));
      part.outputs.clear();
      const Typed<mp50> result = attend<mp50>(part, false);
      const auto copy = [&](const Array<mp50>& from, Array<mp50>& to) {
        std::copy(from.values.begin(), from.values.end(),
                  to.values.begin() + p * static_cast<std::int64_t>(from.values.size()));
      };
      copy(result.out("output"), outputs);
      copy(result.out("lse"), lses);
      for (const mp50& value : result.out("lse").values) dead_part = dead_part || !is_finite(value);
      problems.push_back(part);
    }
    d.needs("a part without keys", dead_part);
    for (std::size_t i = 0; i < lses.values.size(); ++i) {
      const auto width = static_cast<std::size_t>(x.Dv);
      for (std::size_t v = 0; v < width && !is_finite(lses.values[i]); ++v)
        outputs.values[i * width + v] = not_a_number<mp50>();
    }
    for (const char* name : {"lse_base", "lse_includes_sink", "empty_lse"}) {
      if (x.problem.options.contains(name)) merged.options[name] = x.problem.options[name];
    }
    support::put_in(merged, "outputs", support::working(outputs));
    support::put_in(merged, "lse", support::working(lses));
    if (!x.sink.empty()) support::put_in(merged, "sink", x.problem.in.find("sink")->second);
    merged.cot = x.problem.cot;
    Typed<mp50> merge = support::evaluate<merge_attention::Op, mp50>(merged);
    auto expected = whole.outputs;
    expected.erase("max_logit");
    holds(merge.outputs, expected);

    std::map<std::string, Array<mp50>, std::less<>> gradients;
    if (!x.sink.empty()) gradients.emplace("sink", merge.grad("sink"));
    for (std::int64_t p = 0; p < parts; ++p) {
      Problem& part = problems[static_cast<std::size_t>(p)];
      const auto slice = [&](const Array<mp50>& from, const Shape& shape) {
        Array<mp50> to(shape);
        const auto size = static_cast<std::int64_t>(to.values.size());
        std::copy(from.values.begin() + p * size, from.values.begin() + (p + 1) * size,
                  to.values.begin());
        return to;
      };
      const Array<mp50> output = slice(merge.grad("outputs"), {x.B, x.T, x.H, x.Dv});
      const Array<mp50> lse = slice(merge.grad("lse"), {x.B, x.T, x.H});
      support::put_cot(part, "output", support::working(output));
      support::put_cot(part, "lse", support::working(lse));
      for (const auto& [name, array] : attend<mp50>(part).gradients) {
        const auto [total, first] = gradients.emplace(name, array);
        for (std::size_t i = 0; i < array.values.size() && !first; ++i)
          total->second.values[i] += array.values[i];
      }
    }
    holds(gradients, whole.gradients);
  });
}

TEST(MergeAttention, GradientIsTheFiniteDifference) {
  property([](Distribution& d) {
    using support::pick;
    const std::int64_t P = pick(1, 4), B = pick(1, 2), T = pick(1, 3), H = pick(1, 3),
                       D = pick(1, 3);
    support::Stream stream(static_cast<std::uint64_t>(pick(0, 1 << 20)), "merge");
    const auto reals = [&](const Shape& shape) {
      return support::f64s(shape, stream.reals(count_of(shape), Contents::dyadic));
    };
    Problem problem;
    const bool plus = support::chance(40);
    if (plus) problem.options["empty_lse"] = "+inf";
    if (support::chance(50)) problem.options["lse_base"] = 2;
    if (support::chance(50)) problem.options["lse_includes_sink"] = true;
    Numbers lse = stream.reals(P * B * T * H, Contents::dyadic);
    bool dead = false;
    for (double& value : lse) {
      if (stream.chance(30)) value = plus ? INFINITY : -INFINITY, dead = true;
    }
    d.needs("a part without keys", dead);
    support::put_in(problem, "outputs", reals({P, B, T, H, D}));
    support::put_in(problem, "lse", support::f64s({P, B, T, H}, lse));
    if (support::chance(60)) support::put_in(problem, "sink", reals({H}));
    support::put_cot(problem, "output", reals({B, T, H, D}));
    support::put_cot(problem, "lse", reals({B, T, H}));
    const auto evaluate = [](const Problem& each) {
      return support::evaluate<merge_attention::Op, mp100>(each);
    };
    const auto total = [&](const Problem& each) {
      const Typed<mp100> result = evaluate(each);
      mp100 sum = 0;
      for (const char* name : {"output", "lse"}) {
        const Array<mp100> cot = numbers<mp100>(problem.cot.find(name)->second);
        for (std::size_t i = 0; i < cot.values.size(); ++i) {
          if (is_finite(result.out(name).values[i]))
            sum += cot.values[i] * result.out(name).values[i];
        }
      }
      return sum;
    };
    const Typed<mp100> analytic = evaluate(problem);
    const mp100 step = ldexp(mp100(1), -100);
    for (const auto& [name, gradient] : analytic.gradients) {
      const Array<mp100> at = numbers<mp100>(problem.in.find(name)->second);
      Array<mp100> up = at, down = at;
      mp100 expected = 0;
      for (std::size_t i = 0; i < at.values.size(); ++i) {
        const mp100 direction = is_finite(at.values[i]) ? mp100(stream.pick(-4, 4)) : mp100(0);
        if (direction == 0) continue;
        up.values[i] += step * direction;
        down.values[i] -= step * direction;
        expected += direction * gradient.values[i];
      }
      Problem moved = problem;
      support::put_in(moved, name, support::working(up));
      mp100 difference = total(moved);
      support::put_in(moved, name, support::working(down));
      difference = (difference - total(moved)) / (2 * step);
      RC_LOG() << name << ": " << difference.str(40) << ", gradient " << expected.str(40)
               << std::endl;
      RC_ASSERT(support::digits(difference, expected, mp100(1)) >= high_digits);
    }
  });
}

}  // namespace
}  // namespace plumbline::properties
