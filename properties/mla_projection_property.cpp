// properties/mla_projection_property.cpp
//
// What linear, the norms, rope and mla_projection guarantee whatever their numbers: slices are the
// whole, a rotation undoes itself, scores know differences of positions only, a schedule, a
// precision and threads change no function, and latents handed over are latents computed.
#include "reference/linear/linear.hpp"
#include "reference/mla_projection/mla_projection.hpp"
#include "reference/rope/rope.hpp"
#include "tests/support/digits.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/typed.hpp"

namespace plumbline::properties {
namespace {

using support::Agreement;
using support::chance;
using support::Contents;
using support::Distribution;
using support::one_of;
using support::pick;
using support::property;
using support::Stream;
using support::Typed;

constexpr double high_digits = 45, double_digits = 11.5;

void holds(const Agreement& found, double digits = high_digits) {
  RC_LOG() << "digits shared: " << found.digits << " of " << digits << "; " << found.where
           << std::endl;
  RC_ASSERT(found.digits >= digits);
}
template <class A, class B> void holds(const std::map<std::string, Array<A>, std::less<>>& found,
                                       const std::map<std::string, Array<B>, std::less<>>& expected,
                                       double digits = high_digits) {
  RC_ASSERT(found.size() == expected.size());
  Agreement worst;
  for (const auto& [name, array] : expected)
    worst.note(support::agreement(found.find(name)->second, array, name, 1));
  holds(worst, digits);
}
void same_bits(const std::vector<Value>& found, const std::vector<Value>& expected) {
  const std::string what = support::difference(found, expected);
  RC_LOG() << (what.empty() ? "" : "other bits: " + what) << std::endl;
  RC_ASSERT(what.empty());
}

// ---- rotations ----------------------------------------------------------------------------------

Json draw_rope(std::int64_t dim) {
  Json rope = {{"theta", one_of<double>({100, 10000, 160000, 0.5, 1.25})},
               {"dim", dim},
               {"pairing", one_of<std::string>({"interleaved", "half"})},
               {"output", one_of<std::string>({"same", "half"})},
               {"placement", one_of<std::string>({"trailing", "leading"})}};
  if (chance(30)) rope["attention_factor"] = one_of<double>({0.75, 1.5, -2});
  if (chance(50)) {
    rope["yarn"] = {{"factor", one_of<double>({1, 4, 40, 0.3})},
                    {"original_max_position", one_of<std::int64_t>({1, 8, 64, 4096})},
                    {"beta_fast", one_of<double>({64, 32, 1})},
                    {"beta_slow", one_of<double>({48, 1, 0.125})},
                    {"truncate", chance(50)}};
  }
  return rope;
}
std::int64_t draw_position() { return chance(20) ? pick(-2000000, 2000000) : pick(0, 40); }
void count(Distribution& d, const Json& rope) {
  d.needs("yarn", rope.contains("yarn"));
  d.needs("output half", rope["output"] == "half");
  d.needs("half pairs", rope["pairing"] == "half");
}

struct RopeCase {
  std::int64_t B, S, H, D;
  std::uint64_t seed;
  Problem problem;
};
RopeCase draw_rope_case() {
  const std::int64_t dim = 2 * pick(1, 5);
  RopeCase x{pick(1, 2),
             pick(0, 4),
             pick(1, 3),
             dim + pick(0, 3),
             static_cast<std::uint64_t>(pick(1, 1 << 20)),
             {}};
  support::Integers positions;
  for (std::int64_t i = 0; i < x.B * x.S; ++i)
    positions.push_back(static_cast<std::int32_t>(draw_position()));
  Stream stream(x.seed, "x");
  x.problem = support::problem(
      {{"rope", draw_rope(dim)}},
      {{"x",
        support::f64s({x.B, x.S, x.H, x.D}, stream.reals(x.B * x.S * x.H * x.D, Contents::bits))},
       {"positions", support::i32s({x.B, x.S}, positions)}});
  RC_LOG() << "B " << x.B << " S " << x.S << " H " << x.H << " D " << x.D << " "
           << x.problem.options.dump() << std::endl;
  return x;
}
template <class T> Array<T> rotate(const Problem& problem) {
  Evaluation how;
  how.backward = false;
  return support::evaluate<rope::Op, T>(problem, how).out("y");
}
TEST(Rope, ThereAndBackIsTheFactorSquared) {
  property([](Distribution& d) {
    const RopeCase x = draw_rope_case();
    const Json& rope = x.problem.options["rope"];
    count(d, rope);
    const Array<mp50> there = rotate<mp50>(x.problem);
    Problem back = x.problem;
    back.options["rope"]["inverse"] = true;
    support::put_in(back, "x", support::working(there));
    const std::int64_t dim = rope["dim"], first = rope["placement"] == "leading" ? 0 : x.D - dim;
    const mp50 factor = from_double<mp50>(rope.value("attention_factor", 1.0));
    Array<mp50> expected({x.B, x.S, x.H, x.D});
    support::each_index(expected.shape, [&](std::size_t flat, Index index) {
      const bool turned = index[3] >= first && index[3] < first + dim;
      expected.values[flat] = Fetch<mp50>::element(x.problem.in.find("x")->second, index) *
                              (turned ? mp50(factor * factor) : mp50(1));
    });
    holds(support::agreement(rotate<mp50>(back), expected, "y"));
  });
}

TEST(Rope, GradientIsTheTranspose) {  // Σ cot·R x = Σ grad·x, for any x and cot
  property([](Distribution& d) {
    RopeCase x = draw_rope_case();
    count(d, x.problem.options["rope"]);
    const bool inverse = chance(50);
    d.needs("inverse", inverse);
    x.problem.options["rope"]["inverse"] = inverse;
    Stream stream(x.seed, "cot");
    const Shape shape = {x.B, x.S, x.H, x.D};
    support::put_cot(x.problem, "y",
                     support::f64s(shape, stream.reals(count_of(shape), Contents::bits)));
    const Typed<mp50> result = support::evaluate<rope::Op, mp50>(x.problem);
    mp50 out(0), in(0), scale(0);
    support::each_index(shape, [&](std::size_t flat, Index index) {
      const mp50 cot = Fetch<mp50>::element(x.problem.cot.find("y")->second, index);
      const mp50 value = Fetch<mp50>::element(x.problem.in.find("x")->second, index);
      out += cot * result.out("y").values[flat];
      in += value * result.grad("x").values[flat];
      scale += magnitude(mp50(cot * result.out("y").values[flat]));
    });
    holds(Agreement{support::digits(mp100(out), mp100(in), mp100(scale)), "inner products"});
  });
}

TEST(Rope, ScoresDependOnDifferencesAndOnNoLayout) {
  property([](Distribution& d) {
    const std::int64_t dim = 2 * pick(1, 5);
    const Json rope = draw_rope(dim);
    count(d, rope);
    Stream stream(static_cast<std::uint64_t>(pick(1, 1 << 20)), "x");
    const std::vector<double> q = stream.reals(dim, Contents::bits),
                              k = stream.reals(dim, Contents::bits);
    const std::int64_t p = draw_position(), apart = pick(-50, 50), shift = draw_position();
    RC_LOG() << rope.dump() << " at " << p << ", " << p + apart << ", both moved by " << shift
             << std::endl;
    const auto score = [&](const Json& options, std::int64_t moved) {
      const Array<mp100> y = rotate<mp100>(support::problem(
          {{"rope", options}},
          {{"x", support::f64s({1, 2, 1, dim},
                               [&] {
                                 auto both = q;
                                 both.insert(both.end(), k.begin(), k.end());
                                 return both;
                               }())},
           {"positions", support::i32s({1, 2}, {static_cast<std::int32_t>(p + moved),
                                                static_cast<std::int32_t>(p + apart + moved)})}}));
      return dot<mp100>(y.row({0, 0, 0}, dim), y.row({0, 1, 0}, dim));
    };
    const mp100 here = score(rope, 0);
    holds(Agreement{support::digits(score(rope, shift), here, mp100(1)), "moved"});
    Json other = rope;
    other["output"] = rope["output"] == "half" ? "same" : "half";
    holds(Agreement{support::digits(score(other, 0), here, mp100(1)), "another output"});
  });
}

TEST(Rope, PrecisionsAgree) {
  property([](Distribution& d) {
    const RopeCase x = draw_rope_case();
    count(d, x.problem.options["rope"]);
    const Array<mp100> truth = rotate<mp100>(x.problem);
    holds(support::agreement(rotate<f192>(x.problem), truth, "f192", 1));
    holds(support::agreement(rotate<f64>(x.problem), truth, "f64", 1),
          14.5);  // angles are not reduced in f64
  });
}

// ---- linear -------------------------------------------------------------------------------------

TEST(Linear, SlicesSideBySideAreTheWhole) {
  property([](Distribution& d) {
    const std::int64_t n = pick(0, 40), I = pick(1, 5), G = pick(1, 3), O = pick(1, 7);
    const bool bias = chance(60);
    const auto seed = static_cast<std::uint64_t>(pick(1, 1 << 20));
    const auto tensor = [&](const char* name, Shape shape) {
      Stream stream(seed, name);
      const std::int64_t size = count_of(shape);
      return support::f64s(std::move(shape), stream.reals(size, Contents::bits));
    };
    Problem whole = support::problem(
        Json::object(), {{"x", tensor("x", {n, I})}, {"weight", tensor("weight", {I, G, O})}},
        {{"y", tensor("y", {n, G, O})}});
    if (bias) support::put_in(whole, "bias", tensor("bias", {G, O}));
    std::vector<std::int64_t> cuts = {0};
    while (cuts.back() < O) cuts.push_back(cuts.back() + pick(1, O - cuts.back()));
    d.needs("three slices or more", cuts.size() > 3);
    d.needs("several blocks of rows", n > rows_of_a_block);
    d.needs("bias", bias);
    d.notes("no row", n == 0);
    RC_LOG() << "n " << n << " I " << I << " G " << G << " O " << O << " slices " << cuts.size() - 1
             << std::endl;

    const Typed<mp50> expected = support::evaluate<linear::Op, mp50>(whole);
    Typed<mp50> joined;
    joined.outputs["y"] = Array<mp50>({n, G, O});
    for (const auto& [name, array] : expected.gradients)
      joined.gradients[name] = Array<mp50>(array.shape);
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      Problem slice = whole;
      slice.options["slice_bounds"] = {cuts[i - 1], cuts[i]};
      support::put_cot(
          slice, "y",
          support::take(whole.cot.find("y")->second, 2, support::range(cuts[i - 1], cuts[i])));
      const Typed<mp50> part = support::evaluate<linear::Op, mp50>(slice);
      support::each_index(part.out("y").shape, [&](std::size_t flat, Index index) {
        joined.outputs["y"]({index[0], index[1], index[2] + cuts[i - 1]}) =
            part.out("y").values[flat];
      });
      for (auto& [name, array] : joined.gradients) {
        for (std::size_t j = 0; j < array.values.size(); ++j)
          array.values[j] += part.grad(name).values[j];
      }
    }
    RC_ASSERT(joined.outputs["y"].values == expected.out("y").values);
    RC_ASSERT(joined.gradients["weight"].values == expected.grad("weight").values);
    if (bias) RC_ASSERT(joined.gradients["bias"].values == expected.grad("bias").values);
    holds(joined.gradients, expected.gradients);
  });
}

// ---- mla_projection -----------------------------------------------------------------------------

struct ProjectionCase {
  bool direct = false, biases = false, longer = false;
  std::int64_t B = 1, S = 1, E = 1, H = 1, dn = 1, dr = 2, dv = 1, Rq = 1, Rkv = 1;
  std::uint64_t seed = 1;
  Problem problem;
};
ProjectionCase draw_projection() {
  ProjectionCase x;
  x.direct = chance(40), x.biases = chance(50), x.longer = chance(30);
  x.B = pick(1, 2), x.S = chance(25) ? pick(17, 20) : pick(0, 4), x.E = pick(1, 4),
  x.H = pick(1, 3);
  x.dn = pick(1, 3), x.dr = 2 * pick(1, 2), x.dv = pick(1, 4), x.Rq = pick(1, 4),
  x.Rkv = pick(1, 4);
  x.seed = static_cast<std::uint64_t>(pick(1, 1 << 20));
  Problem& p = x.problem;
  p.options = {{"nope_dim", x.dn},
               {"rope_dim", x.dr},
               {"v_dim", x.dv},
               {"eps", one_of<double>({1e-6, 0.01})},
               {"rope", draw_rope(x.dr)}};
  if (x.longer) {
    p.options["rope"]["yarn"] = {
        {"factor", 4}, {"original_max_position", 64}, {"beta_fast", 32}, {"beta_slow", 1}};
    p.options["max_position"] = 256, p.options["original_max_position"] = 64,
    p.options["mscale"] = 0.7;
  }
  const auto made = [&](const char* name, Shape shape) {
    Stream stream(x.seed, name);
    const std::int64_t size = count_of(shape);
    return support::f64s(std::move(shape), stream.reals(size, Contents::bits));
  };
  const auto in = [&](const char* name, Shape shape) {
    support::put_in(p, name, made(name, std::move(shape)));
  };
  in("x", {x.B, x.S, x.E});
  if (x.direct) {
    in("wq", {x.E, x.H, x.dn + x.dr});
  } else {
    in("wq_a", {x.E, x.Rq}), in("q_norm", {x.Rq}), in("wq_b", {x.Rq, x.H, x.dn + x.dr});
  }
  in("wkv_a", {x.E, x.Rkv + x.dr}), in("kv_norm", {x.Rkv}), in("wkv_b", {x.Rkv, x.H, x.dn + x.dv});
  if (x.biases && x.direct) in("bq", {x.H, x.dn + x.dr});
  if (x.biases && !x.direct) in("bq_a", {x.Rq}), in("bq_b", {x.H, x.dn + x.dr});
  if (x.biases) in("bkv_a", {x.Rkv + x.dr}), in("bkv_b", {x.H, x.dn + x.dv});
  const auto cot = [&](const char* name, Shape shape) {
    support::put_cot(p, name, made(name, std::move(shape)));
  };
  cot("query", {x.B, x.S, x.H, x.dn + x.dr}), cot("key", {x.B, x.S, x.H, x.dn + x.dr}),
      cot("value", {x.B, x.S, x.H, x.dv});
  if (chance(50)) cot("kv_latent", {x.B, x.S, x.Rkv}), cot("k_pe", {x.B, x.S, x.dr});
  if (!x.direct && chance(50)) cot("q_latent", {x.B, x.S, x.Rq});
  RC_LOG() << "B " << x.B << " S " << x.S << " E " << x.E << " H " << x.H << " dv " << x.dv
           << " Rq " << x.Rq << " Rkv " << x.Rkv << (x.direct ? " direct" : "")
           << (x.biases ? " biases " : " ") << p.options.dump() << std::endl;
  return x;
}
void count(Distribution& d, const ProjectionCase& x) {
  d.needs("direct query", x.direct);
  d.needs("low-rank query", !x.direct);
  d.needs("biases", x.biases);
  d.needs("mscale", x.longer);
  d.needs("several blocks of rows", x.B * x.S > rows_of_a_block);
  d.notes("no token", x.S == 0);
}

TEST(MlaProjection, SlicedIsWhole) {
  property([](Distribution& d) {
    const ProjectionCase x = draw_projection();
    count(d, x);
    Problem sliced = x.problem;
    sliced.schedule["sliced"] = true;
    const auto whole = support::evaluate<mla_projection::Op, mp50>(x.problem),
               parts = support::evaluate<mla_projection::Op, mp50>(sliced);
    holds(parts.outputs, whole.outputs, support::all_digits);
    holds(parts.gradients, whole.gradients);
    for (const char* name :
         {"wq", "wq_b", "wkv_b", "bq", "bq_b", "bkv_b"}) {  // the same sums in the same order
      if (x.problem.in.count(name) > 0)
        RC_ASSERT(parts.grad(name).values == whole.grad(name).values);
    }
  });
}

TEST(MlaProjection, PrecisionsAgree) {
  property([](Distribution& d) {
    const ProjectionCase x = draw_projection();
    count(d, x);
    const auto truth = support::evaluate<mla_projection::Op, mp100>(x.problem);
    const auto high = support::evaluate<mla_projection::Op, f192>(x.problem);
    holds(high.outputs, truth.outputs);
    holds(high.gradients, truth.gradients);
    const auto f64s = support::evaluate<mla_projection::Op, f64>(x.problem);
    holds(f64s.outputs, truth.outputs, double_digits);
  });
}

TEST(MlaProjection, ThreadsChangeNoBit) {
  property([](Distribution& d) {
    const ProjectionCase x = draw_projection();
    count(d, x);
    Evaluation how;
    how.precision = Precision::f64, how.backward = true;
    const Result one = operation("mla_projection").evaluate(x.problem, how);
    how.threads = 3;
    const Result three = operation("mla_projection").evaluate(x.problem, how);
    same_bits(three.outputs, one.outputs);
    same_bits(three.gradients, one.gradients);
  });
}

// Each latent handed over, or left to be computed: one function, and a constant has no gradient.
TEST(MlaProjection, GivenLatentsAreThoseComputed) {
  property([](Distribution& d) {
    const ProjectionCase x = draw_projection();
    count(d, x);
    const auto computed = support::evaluate<mla_projection::Op, f192>(x.problem);
    Problem given = x.problem;
    for (const char* name : {"q_latent", "kv_latent", "k_pe"}) {
      const bool taken = computed.outputs.count(name) > 0 && chance(50);
      d.notes(std::string("given ") + name, taken);
      if (taken) support::put_given(given, name, support::working(computed.out(name)));
    }
    const auto result = support::evaluate<mla_projection::Op, f192>(given);
    holds(result.outputs, computed.outputs, support::all_digits);
    const auto zero = [&](const char* name) {
      if (x.problem.in.count(name) == 0) return;
      for (const f192& value : result.grad(name).values) RC_ASSERT(value == f192(0));
    };
    const bool q = given.given.count("q_latent") > 0, kv = given.given.count("kv_latent") > 0,
               pe = given.given.count("k_pe") > 0;
    if (q) zero("wq_a"), zero("q_norm"), zero("bq_a");
    if (kv) zero("kv_norm");
    if (kv && pe) zero("wkv_a"), zero("bkv_a");
    if (q && kv && pe) zero("x");
    for (const char* name : {"wq", "bq", "wq_b", "wkv_b", "bq_b", "bkv_b"}) {
      if (x.problem.in.count(name) > 0)
        RC_ASSERT(result.grad(name).values == computed.grad(name).values);
    }
  });
}

}  // namespace
}  // namespace plumbline::properties
