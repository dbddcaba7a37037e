// properties/csa_layer_property.cpp
//
// The CSA layer as a whole, of every kind: where gradients may go, its schedules with a loss, prefill and steps,
// rows in any order, documents alone, and what nobody reads. A server's calls: csa_step_property.cpp.
#include "properties/csa_layer_check.hpp"

namespace plumbline::properties {
namespace {

using support::chance;
using support::pick;
using support::put_cot;
using support::put_in;
const double unread = std::numeric_limits<double>::quiet_NaN();

Result layer_f64(const Problem& problem, bool backward) {
  return operation("csa_layer")
      .evaluate(problem, {.precision = Precision::f64, .backward = backward});
}

void put_loss(Drawn& drawn, Distribution& d) {
  const bool sparse = chance(50);
  Json loss = {{"sparse", sparse}, {"coefficient", 0.75}, {"allow_full_selection", true}};
  loss["preset"] = support::one_of<std::string>(
      {"maxtext_v4", "exact", "megatron", "tilelang", "megatron_csa_fused", "primus", "veomni"});
  drawn.problem().options["loss"] = loss;
  d.needs("sparse", sparse);
}
Drawn layer_with_loss(Distribution& d) {
  Drawn drawn = draw({"csa"});
  while (!drawn.n.indexer) drawn = draw({"csa"});
  drawn.write.whole_layer();
  put_loss(drawn, d);
  const CsaLayerSizes& n = drawn.n;
  drawn.write.cot("output", {n.B, n.S, n.E});
  return drawn;
}

bool is_zero(const Value& value) {
  const auto zero = [](double x) { return x == 0; };
  return std::all_of(value.high.begin(), value.high.end(), zero) &&
         std::all_of(value.low.begin(), value.low.end(), zero);
}

TEST(CsaLayer, LossAndOutputKeepToTheirOwnWeights) {
  property([](Distribution& d) {
    Drawn drawn = layer_with_loss(d);
    const CsaLayerSizes& n = drawn.n;
    Problem loss_alone = drawn.problem(), output_alone = drawn.problem();
    put_cot(loss_alone, "output",
            support::f64s({n.B, n.S, n.E}, support::Numbers(place(n.B * n.S * n.E), 0)));
    put_cot(loss_alone, "loss", support::f64s({}, {1.0}));
    put_cot(output_alone, "loss", support::f64s({}, {0.0}));
    bool any = false;
    for (const Value& gradient : layer_f64(loss_alone, true).gradients) {
      const bool indexer = gradient.name.starts_with("indexer_");
      RC_ASSERT(indexer || is_zero(gradient));
      any = any || (indexer && !is_zero(gradient));
    }
    for (const Value& gradient : layer_f64(output_alone, true).gradients)
      RC_ASSERT(!gradient.name.starts_with("indexer_") || is_zero(gradient));
    d.needs("the loss has a gradient", any);
  });
}

TEST(CsaLayer, SchedulesWithALossAreOneFunction) {
  property([](Distribution& d) {
    Drawn drawn = layer_with_loss(d);
    drawn.problem().outputs = {"all"};
    put_cot(drawn.problem(), "loss", support::f64s({}, {1.5}));
    Problem scheduled = drawn.problem();
    const std::int64_t chunk = pick(0, drawn.n.H + 1);
    scheduled.schedule = {
        {"barrier", chance(50)}, {"head_chunk", chunk}, {"key_block", pick(0, 4)}};
    d.needs("ragged chunks", chunk > 0 && drawn.n.H % chunk != 0);
    holds(layer<mp50>(scheduled, true), layer<mp50>(drawn.problem(), true));
  });
}

// Rows of the whole in calls of any lengths; blocks are completed on the way.
TEST(CsaLayer, PrefillAndStepsAreTheWhole) {
  property([](Distribution& d) {
    Drawn drawn = draw(all_kinds);
    drawn.write.whole_layer();
    drawn.problem().outputs = {"all"};
    Problem calls = drawn.problem();
    const std::int64_t first = pick(0, drawn.n.S), step = pick(first == 0 ? 1 : 0, 5);
    calls.schedule = {{"prefill", first}, {"step", step}};
    notes_of(d, drawn.n);
    d.needs("a block over two calls", drawn.n.kind != "window" && first % drawn.n.m != 0);
    holds(layer<mp50>(calls, false), layer<mp50>(drawn.problem(), false));
  });
}

// Who reads a token, by the rules of the page, written a second time.
struct Readers {
  const Drawn& drawn;
  std::int64_t segment(std::int64_t b, std::int64_t s) const {
    return drawn.write.segments[place(b * drawn.n.S + s)];
  }
  std::int64_t position(std::int64_t b, std::int64_t s) const {
    return drawn.write.positions[place(b * drawn.n.S + s)];
  }
  bool padding(std::int64_t b, std::int64_t s) const {
    return drawn.n.documents && segment(b, s) == 0;
  }
  bool sees(std::int64_t b, std::int64_t t, std::int64_t j) const {
    const std::int64_t first = j * drawn.n.m;
    for (std::int64_t s = first; s < first + drawn.n.m; ++s) {
      if (padding(b, s) || segment(b, s) != segment(b, t)) return false;
    }
    return position(b, first) + drawn.n.m <= position(b, t) + 1;
  }
  bool follows(std::int64_t b, std::int64_t j) const {  // lane A of block j is block j − 1
    if (drawn.n.kind != "csa" || j == 0) return false;
    const std::int64_t first = j * drawn.n.m, before = first - drawn.n.m;
    return drawn.write.made.problem.options.contains("boundary")
               ? segment(b, first) == segment(b, before)
               : position(b, first) == position(b, before) + drawn.n.m;
  }
  // Of x [B, S]; real: of rows [B, S].
  std::vector<char> read(const std::vector<std::uint8_t>& real) const {
    const CsaLayerSizes& n = drawn.n;
    std::vector<char> read(place(n.B * n.S), 0);
    for (std::int64_t b = 0; b < n.B; ++b) {
      for (std::int64_t t = 0; t < n.S; ++t) {
        if (real[place(b * n.S + t)] == 0 || padding(b, t)) continue;
        read[place(b * n.S + t)] = 1;
        for (std::int64_t s = std::max<std::int64_t>(0, t - n.window + 1); s <= t; ++s) {
          if (segment(b, s) == segment(b, t)) read[place(b * n.S + s)] = 1;
        }
        for (std::int64_t j = 0; j < n.blocks(); ++j) {
          if (!sees(b, t, j)) continue;
          for (std::int64_t s = (follows(b, j) ? j - 1 : j) * n.m; s < (j + 1) * n.m; ++s) {
            if (!padding(b, s)) read[place(b * n.S + s)] = 1;
          }
        }
      }
    }
    return read;
  }
};

TEST(CsaLayer, TokensThatNobodyReadsChangeNoBit) {
  property([](Distribution& d) {
    Drawn drawn = draw(all_kinds);
    drawn.write.whole_layer();
    const CsaLayerSizes& n = drawn.n;
    if (n.indexer && chance(50)) put_loss(drawn, d);
    Problem& problem = drawn.problem();
    if (n.documents) problem.options["mask"] = {{"padding_segment", 0}};
    drawn.write.cot("output", {n.B, n.S, n.E});
    put_cot(problem, "loss", support::f64s({}, {1.0}));
    std::vector<std::uint8_t> real;
    for (std::int64_t i = 0; i < n.B * n.S; ++i) real.push_back(chance(40) ? 1 : 0);
    put_in(problem, "row_mask", support::bools({n.B, n.S}, real));
    Problem poisoned = problem;
    const Readers readers{drawn};
    const std::vector<char> read = readers.read(real);
    std::vector<double> x = support::numbers_of(problem.in.at("x")),
                        cot = support::numbers_of(problem.cot.at("output"));
    bool padding = false, other = false;
    for (std::int64_t i = 0; i < n.B * n.S; ++i) {
      const bool pad = readers.padding(i / n.S, i % n.S);
      for (std::int64_t c = i * n.E; c < (i + 1) * n.E; ++c) {
        if (read[place(i)] == 0) x[place(c)] = unread;
        if (real[place(i)] == 0 || pad) cot[place(c)] = unread;
      }
      padding = padding || pad;
      other = other || (read[place(i)] == 0 && !pad);
    }
    put_in(poisoned, "x", support::f64s({n.B, n.S, n.E}, x));
    put_cot(poisoned, "output", support::f64s({n.B, n.S, n.E}, cot));
    same_bits(layer_f64(poisoned, true), layer_f64(problem, true));
    d.needs("padding", padding);
    d.needs("tokens that nobody reads", other);
    d.notes("loss", problem.options.contains("loss"));
  });
}

TEST(CsaLayer, RowsInAnyOrderAreRowsOfTheWhole) {
  property([](Distribution& d) {
    Drawn drawn = draw(all_kinds);
    drawn.write.whole_layer();
    const CsaLayerSizes& n = drawn.n;
    drawn.problem().outputs = {"attention_output", "attention_lse"};
    if (n.indexer) drawn.problem().outputs = {"attention_lse", "indexer_scores", "indexer_indices"};
    Problem some = drawn.problem();
    std::vector<std::int64_t> standing = support::Stream(n.seed, "rows").shuffled(n.S);
    standing.resize(place(pick(1, n.S)));
    put_in(some, "row_index",
           support::i32s({static_cast<std::int64_t>(standing.size())},
                         support::Integers(standing.begin(), standing.end())));
    Result whole = layer_f64(drawn.problem(), false);
    for (Value& value : whole.outputs) {
      if (value.name == "loss") continue;
      Shape shape = value.shape;
      std::int64_t width = 1;
      for (std::size_t axis = 2; axis < shape.size(); ++axis) width *= shape[axis];
      Value rows = value;
      rows.shape[1] = static_cast<std::int64_t>(standing.size());
      rows.high.clear(), rows.low.clear(), rows.integers.clear();
      for (std::int64_t b = 0; b < n.B; ++b) {
        for (const std::int64_t t : standing) {
          const auto at = [&](auto& list) { return list.begin() + (b * n.S + t) * width; };
          if (!value.integers.empty()) {
            rows.integers.insert(rows.integers.end(), at(value.integers),
                                 at(value.integers) + width);
          } else if (!value.high.empty()) {
            rows.high.insert(rows.high.end(), at(value.high), at(value.high) + width);
            rows.low.insert(rows.low.end(), at(value.low), at(value.low) + width);
          }
        }
      }
      value = rows;
    }
    same_bits(layer_f64(some, false), whole);
    notes_of(d, n);
    d.needs("fewer rows", static_cast<std::int64_t>(standing.size()) < n.S);
  });
}

// On the document grid a document knows nothing of its neighbours: not in its rows, not in the gradient of its x.
TEST(CsaLayer, DocumentsAreAlone) {
  property([](Distribution& d) {
    Drawn drawn = draw({"csa", "csa", "hca", "window"});
    const CsaLayerSizes n = [&] {
      CsaLayerSizes one = drawn.n;
      one.B = 1;
      one.documents = true;
      return one;
    }();
    drawn = Drawn{n, CsaLayerWriter(n)};
    CsaLayerWriter& write = drawn.write;
    write.weights();
    write.real("x", {1, n.S, n.E});
    write.cot("output", {1, n.S, n.E});
    Problem& problem = drawn.problem();
    const Documents documents = draw_documents(n.S, true, std::nullopt);
    put_in(problem, "segment_ids", support::i32s({1, n.S}, documents.segments));
    put_in(problem, "positions", support::i32s({1, n.S}, documents.positions));
    if (n.kind != "window") problem.options["grid"] = "document";
    const Typed<mp50> together = layer<mp50>(problem, true);
    bool several_blocks = false;
    for (std::int64_t first = 0; first < n.S;) {
      std::int64_t last = first + 1;
      while (last < n.S && documents.segments[place(last)] == documents.segments[place(first)])
        ++last;
      const std::vector<std::int64_t> range = support::range(first, last);
      Problem alone = problem;
      for (const char* name : {"x", "segment_ids", "positions"})
        put_in(alone, name, support::take(problem.in.at(name), 1, range));
      put_cot(alone, "output", support::take(problem.cot.at("output"), 1, range));
      const Typed<mp50> document = layer<mp50>(alone, true);
      const auto part = [&](const Array<mp50>& whole) {
        Array<mp50> cut({1, last - first, n.E});
        std::copy_n(whole.values.begin() + first * n.E, (last - first) * n.E, cut.values.begin());
        return cut;
      };
      Agreement worst;
      worst.note(
          support::agreement(document.out("output"), part(together.out("output")), "rows", 1));
      worst.note(support::agreement(document.grad("x"), part(together.grad("x")), "grad.x", 1));
      RC_LOG() << "tokens " << first << " to " << last << ": " << worst.digits << " digits; "
               << worst.where << std::endl;
      RC_ASSERT(worst.digits >= high_digits);
      several_blocks =
          several_blocks || (n.kind != "window" && first > 0 && last - first >= 2 * n.m);
      first = last;
    }
    d.needs("several documents", documents.count > 1);
    d.needs("two blocks of a later document", several_blocks);
    d.needs("hca or window", n.kind != "csa");
  });
}

}  // namespace
}  // namespace plumbline::properties
