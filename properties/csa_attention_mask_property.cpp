// properties/csa_attention_mask_property.cpp
//
// What a row of csa_attention does not depend on: the future, other documents, places that nobody reads, other rows,
// threads.
#include <limits>

#include "properties/csa_attention_check.hpp"

namespace plumbline::properties {

Typed<mp50> attend_as_mla(const CsaCase& x) {
  const std::int64_t K = x.S + x.N;
  Problem problem;
  problem.options = mla_options(x);
  problem.options["mask"] = {{"causal", false}};
  problem.outputs = {"all"};
  Flags valid;
  Numbers key;
  const Numbers kv = support::numbers_of(x.problem.in.at("kv")),
                blocks = support::numbers_of(x.problem.in.at("compressed"));
  for (std::int64_t b = 0; b < x.B; ++b) {
    const auto part = [&](const Numbers& from, std::int64_t count) {
      key.insert(key.end(), from.begin() + b * count * x.D, from.begin() + (b + 1) * count * x.D);
    };
    part(kv, x.S), part(blocks, x.N);
    for (std::int64_t t = 0; t < x.T; ++t) {
      for (std::int64_t s = 0; s < x.S; ++s) valid.push_back(x.in_window(b, t, s) ? 1 : 0);
      for (std::int64_t j = 0; j < x.N; ++j) valid.push_back(x.times[x.cell(b, t, j)] > 0 ? 1 : 0);
    }
  }
  for (const char* name : {"query", "sink"}) {
    if (x.problem.in.count(name) > 0) support::put_in(problem, name, x.problem.in.at(name));
  }
  support::put_in(problem, "key", support::f64s({x.B, K, 1, x.D}, key));
  support::put_in(problem, "valid", support::bools({x.B, x.T, K}, valid));
  support::put_in(problem, "row_mask", support::bools({x.B, x.T}, x.real));
  problem.cot = x.problem.cot;
  Typed<mp50> result = evaluate_mla(problem);
  const Array<mp50> all = result.grad("key");
  Array<mp50> dkv({x.B, x.S, x.D}), dblocks({x.B, x.N, x.D});
  for (std::int64_t b = 0; b < x.B; ++b) {
    for (std::int64_t n = 0; n < K; ++n) {
      for (std::int64_t e = 0; e < x.D; ++e)
        (n < x.S ? dkv({b, n, e}) : dblocks({b, n - x.S, e})) = all({b, n, 0, e});
    }
  }
  result.gradients.erase("key");
  result.gradients.emplace("kv", dkv);
  result.gradients.emplace("compressed", dblocks);
  return result;
}

namespace {

using Int = std::int64_t;

// Another number at the places that change(b, n) names, of a tensor [B, n, …].
template <class F> void overwrite(Problem& problem, const char* name, double with, F change) {
  const StoredTensor tensor = problem.in.at(name);
  Numbers values = support::numbers_of(tensor);
  support::each_index(tensor.shape, [&](std::size_t flat, Index index) {
    if (change(index[0], index[1])) values[flat] = with;
  });
  support::put_in(problem, name, support::f64s(tensor.shape, values));
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Rows of output and lse for which `of` holds are the same in both.
template <class F>
void same_rows(const CsaCase& x, const Result& found, const Result& expected, F of) {
  for (const char* name : {"output", "lse", "max_logit"}) {
    const Value &a = support::output(found, name), &b = support::output(expected, name);
    support::each_index(a.shape, [&](std::size_t flat, Index index) {
      if (x.is_real(index[0], index[1]) && of(index[0], index[1]))
        RC_ASSERT(same(a.high[flat], b.high[flat]) && same(a.low[flat], b.low[flat]));
    });
  }
}

TEST(CsaAttention, NoRowSeesTheFuture) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.causal_only = true;
    wish.gaps = false;
    const CsaCase x = draw_csa_case(wish);
    RC_PRE(x.S > 0);
    count(d, x);
    const Int cut = support::pick(0, x.S - 1);
    bool before = false;
    for (const Int r : x.token) before = before || r <= cut;
    d.needs("rows on both sides of the cut", before && x.token.size() > 1 && cut + 1 < x.S);
    Problem changed = x.problem;
    changed.options["nonfinite"] = "allow";
    const Result whole = attend_f64(changed);
    overwrite(changed, "kv", NAN, [&](Int, Int s) { return s > cut; });
    overwrite(changed, "compressed", NAN,
              [&](Int, Int j) { return x.first[static_cast<std::size_t>(j)] + x.m - 1 > cut; });
    same_rows(x, attend_f64(changed), whole,
              [&](Int, Int t) { return x.token[static_cast<std::size_t>(t)] <= cut; });
  });
}

TEST(CsaAttention, DocumentsAreAlone) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.documents = true;
    const CsaCase x = draw_csa_case(wish);
    RC_PRE(x.T > 0);
    count(d, x);
    const Int row = support::pick(0, x.T - 1), r = x.token[static_cast<std::size_t>(row)];
    // Every other document than that of this row, in its batch: NaN in all its tokens and all its blocks.
    const Int b0 = support::pick(0, x.B - 1), mine = x.segment_of(b0, r);
    bool others = false;
    for (Int s = 0; s < x.S; ++s) others = others || x.segment_of(b0, s) != mine;
    d.needs("several documents", others);
    Problem changed = x.problem;
    changed.options["nonfinite"] = "allow";
    changed.outputs = {"all"};
    const Result whole = attend_f64(changed);
    overwrite(changed, "kv", NAN,
              [&](Int b, Int s) { return b != b0 || x.segment_of(b, s) != mine; });
    overwrite(changed, "compressed", NAN, [&](Int b, Int j) {
      const Int first = x.first[static_cast<std::size_t>(j)];
      for (Int s = first; s < first + x.m; ++s) {
        if (b != b0 || x.segment_of(b, s) != mine) return true;
      }
      return false;
    });
    same_rows(x, attend_f64(changed), whole, [&](Int b, Int t) {
      return b == b0 && x.segment_of(b, x.token[static_cast<std::size_t>(t)]) == mine;
    });
  });
}

TEST(CsaAttention, HiddenPlacesChangeNoBit) {
  property([](Distribution& d) {
    const CsaCase x = draw_csa_case();
    count(d, x);
    d.needs("rows not real", x.unreal_row());
    Problem problem = x.problem;
    problem.schedule = draw_csa_schedule(x);
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

// Some rows in some order, by row_index, are those rows of the whole.
TEST(CsaAttention, RowsByIndexAreRowsOfTheWhole) {
  property([](Distribution& d) {
    CsaWish wish;
    wish.whole = true;
    const CsaCase x = draw_csa_case(wish);
    count(d, x);
    support::Stream stream(x.seed, "some");
    std::vector<Int> rows = stream.shuffled(x.S);
    rows.resize(static_cast<std::size_t>(support::pick(0, x.S)));
    d.needs("rows in another order", !std::is_sorted(rows.begin(), rows.end()));
    Problem some = x.problem;
    for (const char* name : {"query", "valid", "mask", "row_mask", "selected", "indices"}) {
      if (some.in.count(name) > 0)
        support::put_in(some, name, support::take(some.in.at(name), 1, rows));
    }
    for (const char* name : {"output", "lse"}) {
      if (some.cot.count(name) > 0)
        support::put_cot(some, name, support::take(some.cot.at(name), 1, rows));
    }
    support::put_in(
        some, "row_index",
        support::i32s({static_cast<Int>(rows.size())}, Integers(rows.begin(), rows.end())));
    const Typed<f64> whole = attend<f64>(x.problem), found = attend<f64>(some);
    const auto check = [&](const Array<f64>& part, const Array<f64>& of) {
      support::each_index(part.shape, [&](std::size_t flat, Index index) {
        std::vector<Int> place(index.begin(), index.end());
        place[1] = rows[static_cast<std::size_t>(place[1])];
        std::size_t at = 0;
        for (std::size_t axis = 0; axis < place.size(); ++axis)
          at =
              at * static_cast<std::size_t>(of.shape[axis]) + static_cast<std::size_t>(place[axis]);
        RC_ASSERT(same(part.values[flat], of.values[at]));
      });
    };
    for (const char* name : {"output", "lse", "max_logit"}) check(found.out(name), whole.out(name));
    check(found.grad("query"), whole.grad("query"));
  });
}

TEST(CsaAttention, ThreadsChangeNoBit) {
  property([](Distribution& d) {
    const CsaCase x = draw_csa_case();
    Problem problem = x.problem;
    problem.schedule = draw_csa_schedule(x);
    count(d, x);
    const Result one = attend_f64(problem, 1);
    same_bits(attend_f64(problem, 2), one);
    same_bits(attend_f64(problem, 5), one);
  });
}

}  // namespace
}  // namespace plumbline::properties
