// The compressor as a layer uses it: chosen blocks, tokens from a callback, no token asked for that no chosen block
// reads; and what a layer's `indexer` object names.
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "reference/csa_compress/projected.hpp"
#include "reference/csa_indexer/tokens.hpp"
#include "reference/registry/option_visitors.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline {
namespace {

using csa_compress::Compressor;
using csa_compress::PartGradients;
using csa_compress::ProjectedTokens;
using support::f64s;

StoredTensor drawn(const std::string& name, const Shape& shape) {
  StoredTensor tensor =
      f64s(shape, support::Stream(5, name).reals(count_of(shape), support::Contents::dyadic));
  tensor.name = name;
  return tensor;
}

// Two sequences of 23 tokens, m = 2, documents of 9 and 14: lane A of block 4 is cut (its first token belongs to the
// first document, the one of block 5 to the second).
struct Setting {
  std::int64_t B = 2, S = 23, E = 5, D = 3, m = 2;
  csa_compress::Options options;
  csa_compress::Parts parts;
  MaskInputs mask;
  Sizes sizes;
  std::optional<Visibility> tokens;
  StoredTensor x = drawn("x", {B, S, E}), kv_proj = drawn("kv_proj", {E, 2 * D}),
               gate_proj = drawn("gate_proj", {E, 2 * D});

  explicit Setting(std::int64_t block = 2) : m(block) {
    options.m = m;
    options.boundary = csa_compress::Boundary::segments;
    parts.position_bias = drawn("bias", {m, 2 * D});
    parts.norm_weight = drawn("norm", {D});
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < B * S; ++i) ids.push_back(i % S < 9 ? 1 : 2);
    mask.segment_ids = support::i32s({B, S}, ids);
    sizes.set("B", B, "test");
    sizes.set("S", S, "test");
    tokens.emplace(MaskOptions{}, mask, sizes, csa_compress::blocks_of(options, mask));
  }
  std::int64_t blocks() const { return S / m; }
  // Tokens that the chosen blocks read, by the rule of the page.
  std::set<std::int64_t> read_by(const std::vector<char>& chosen) const {
    std::set<std::int64_t> read;
    const auto segment = [&](std::int64_t j) { return j * m < 9 ? 1 : 2; };
    for (std::int64_t i = 0; i < B * blocks(); ++i) {
      if (chosen[static_cast<std::size_t>(i)] == 0) continue;
      const std::int64_t b = i / blocks(), j = i % blocks();
      const bool lane_a = j > 0 && segment(j) == segment(j - 1);
      for (std::int64_t s = (lane_a ? j - 1 : j) * m; s < (j + 1) * m; ++s) read.insert(b * S + s);
    }
    return read;
  }
  std::vector<char> choose(std::uint64_t seed, int percent) const {
    support::Stream stream(seed, "chosen");
    std::vector<char> chosen;
    for (std::int64_t i = 0; i < B * blocks(); ++i)
      chosen.push_back(stream.chance(percent) ? 1 : 0);
    return chosen;
  }
};

TEST(Compressor, ChosenBlocksReadWhatTheyNeedAndHaveTheSameBits) {
  for (const std::int64_t m : {1, 2, 3, 9}) {
    const Setting s(m);
    const Compressor<f64> compressor(*s.tokens, s.parts, s.options, s.D);
    const ProjectedTokens<f64> projected(s.x, s.kv_proj, s.gate_proj);
    const plumbline::Run run{};
    Array<f64> whole({s.B, s.blocks(), s.D});
    compressor.make(run, projected.source(), compressor.all(), whole);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const std::vector<char> chosen = s.choose(seed, static_cast<int>(8 * seed));
      std::set<std::int64_t> asked;
      const Compressor<f64>::Source source = [&](std::int64_t b, std::int64_t first,
                                                 std::int64_t last, std::span<f64> kv,
                                                 std::span<f64> gate) {
        for (std::int64_t at = first; at < last; ++at) asked.insert(b * s.S + at);
        projected.source()(b, first, last, kv, gate);
      };
      for (const std::int64_t step : {0, 3}) {
        plumbline::Run how{};
        how.schedule.step = step;
        asked.clear();
        Array<f64> some(whole.shape, -77);
        compressor.make(how, source, chosen, some);
        EXPECT_EQ(asked, s.read_by(chosen)) << "m " << m << " step " << step;
        for (std::size_t i = 0; i < some.values.size(); ++i) {
          const bool made = chosen[i / static_cast<std::size_t>(s.D)] != 0;
          EXPECT_EQ(some.values[i], made ? whole.values[i] : -77) << "m " << m << " step " << step;
        }
      }
      RowNotes notes(static_cast<std::size_t>(s.B * s.S), RowNote::blank);
      compressor.mark_read(chosen, notes);
      for (std::int64_t i = 0; i < s.B * s.S; ++i) {
        EXPECT_EQ(notes[static_cast<std::size_t>(i)] == RowNote::as_stored,
                  s.read_by(chosen).contains(i));
      }
    }
  }
}

struct Pulled {
  Array<f64> x;
  Array<f64> kv_proj, gate_proj;
  PartGradients<f64> parts;
  std::set<std::int64_t> received;
};
Pulled pull(const Setting& s, const std::vector<char>& chosen, const Array<f64>& d, int threads) {
  const Compressor<f64> compressor(*s.tokens, s.parts, s.options, s.D);
  const ProjectedTokens<f64> projected(s.x, s.kv_proj, s.gate_proj);
  plumbline::Run run{};
  run.threads = threads;
  Pulled made;
  made.x = Array<f64>(s.x.shape);
  WeightSum<f64> kv(s.kv_proj, made.kv_proj, compressor.blocks()),
      gate(s.gate_proj, made.gate_proj, compressor.blocks());
  const auto receive = projected.receiver(&made.x, kv, gate);
  std::mutex guard;
  compressor.pull_back(
      run, projected.source(), chosen, d,
      [&](std::int64_t shard, std::int64_t b, std::int64_t first, std::int64_t last,
          std::span<const f64> dkv, std::span<const f64> dgate) {
        {
          const std::lock_guard lock(guard);
          for (std::int64_t at = first; at < last; ++at)
            EXPECT_TRUE(made.received.insert(b * s.S + at).second) << "a token comes once";
        }
        receive(shard, b, first, last, dkv, dgate);
      },
      made.parts);
  kv.fold();
  gate.fold();
  return made;
}

TEST(Compressor, GradientsOfChosenBlocksAreThoseOfTheirCotangents) {
  for (const std::int64_t m : {1, 2, 5}) {
    const Setting s(m);
    for (std::uint64_t seed = 1; seed < 9; ++seed) {
      const std::vector<char> chosen = s.choose(seed, static_cast<int>(11 * seed));
      Array<f64> d({s.B, s.blocks(), s.D}), junk = d;
      d.values = support::Stream(seed, "d").reals(count_of(d.shape), support::Contents::dyadic);
      junk.values = d.values;
      for (std::size_t i = 0; i < d.values.size(); ++i) {
        if (chosen[i / static_cast<std::size_t>(s.D)] != 0) continue;
        d.values[i] = 0;
        junk.values[i] = std::numeric_limits<double>::quiet_NaN();  // never looked at
      }
      const Pulled some = pull(s, chosen, junk, 1), three = pull(s, chosen, junk, 3),
                   whole = pull(s, Compressor<f64>::Chosen(chosen.size(), 1), d, 1);
      EXPECT_EQ(some.received, s.read_by(chosen));
      EXPECT_EQ(some.x.values, three.x.values);
      EXPECT_EQ(some.kv_proj.values, three.kv_proj.values);
      const auto near = [](const Array<f64>& a, const Array<f64>& b) {
        ASSERT_EQ(a.values.size(), b.values.size());
        for (std::size_t i = 0; i < a.values.size(); ++i)
          EXPECT_NEAR(a.values[i], b.values[i], 1e-12);
      };
      near(some.x, whole.x);
      near(some.kv_proj, whole.kv_proj);
      near(some.gate_proj, whole.gate_proj);
      near(some.parts.position_bias, whole.parts.position_bias);
      near(some.parts.norm_weight, whole.parts.norm_weight);
    }
  }
}

// Scratch does not grow with S: a layer need not hold [S, 2D].
TEST(Compressor, ScratchIsThatOfARun) {
  std::int64_t peaks[2] = {};
  for (const std::int64_t tokens : {200, 2000}) {
    csa_compress::Options options;
    options.m = 4;
    csa_compress::Parts parts;
    Sizes sizes;
    sizes.set("B", 1, "test");
    sizes.set("S", tokens, "test");
    MaskInputs mask;
    const Visibility visibility(MaskOptions{}, mask, sizes, csa_compress::blocks_of(options, mask));
    const Compressor<f64> compressor(visibility, parts, options, 8);
    Work forward, backward;
    plumbline::Run run{};
    run.work = &forward;
    Array<f64> compressed({1, tokens / 4, 8});
    const auto source = [](std::int64_t, std::int64_t first, std::int64_t, std::span<f64> kv,
                           std::span<f64> gate) {
      for (f64& value : kv) value = static_cast<double>(first + 1);
      for (f64& value : gate) value = 0;
    };
    compressor.make(run, source, compressor.all(), compressed);
    run.work = &backward;
    PartGradients<f64> grad;
    compressor.pull_back(
        run, source, compressor.all(), compressed,
        [](std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::span<const f64>,
           std::span<const f64>) {},
        grad);
    const std::int64_t now[2] = {forward.peak_bytes, backward.peak_bytes};
    for (int i = 0; i < 2; ++i) {
      if (peaks[i] != 0) {
        EXPECT_EQ(peaks[i], now[i]);
      }
      peaks[i] = now[i];
    }
  }
  EXPECT_EQ(peaks[0], 8 * (2 * 5 * 4 * 16 + 2 * 4)) << "five blocks of kv and gate, and logits";
}

TEST(CsaIndexerOptions, ALayerFillsInWhatIsNotNamed) {
  csa_indexer::Options layer;
  layer.m = 4;
  layer.eps = 0.25;
  layer.rope.theta = 160000;
  layer.rope.dim = 8;
  layer.boundary = csa_compress::Boundary::segments;
  layer.grid = Grid::document;
  layer.mask.padding_segment = 3;
  const auto read = [](const Json& json) {
    csa_indexer::NamedOptions named;
    OptionReader reader(json, "option indexer.");
    named.fields(reader);
    reader.finish();
    return named;
  };
  const csa_indexer::Options plain = read({{"k", 7}}).over(layer);
  EXPECT_EQ(plain.k, 7);
  EXPECT_EQ(plain.m, 4);
  EXPECT_EQ(plain.eps, 0.25);
  EXPECT_EQ(plain.rope, layer.rope);
  EXPECT_EQ(plain.boundary, csa_compress::Boundary::segments);
  EXPECT_EQ(plain.grid, Grid::document);
  EXPECT_EQ(plain.mask, layer.mask);
  EXPECT_EQ(plain.score_scale, ScoreScale::heads_and_dim);
  const csa_indexer::Options own = read({{"k", 7},
                                         {"m", 2},
                                         {"eps", 0.5},
                                         {"boundary", "positions"},
                                         {"grid", "physical"},
                                         {"score_scale", "dim"},
                                         {"rope", {{"theta", 10.0}, {"dim", 2}}},
                                         {"mask", {{"causal", false}}}})
                                       .over(layer);
  EXPECT_EQ(own.m, 2);
  EXPECT_EQ(own.eps, 0.5);
  EXPECT_EQ(own.rope.dim, 2);
  EXPECT_EQ(own.boundary, csa_compress::Boundary::positions);
  EXPECT_EQ(own.grid, Grid::physical);
  EXPECT_FALSE(own.mask.causal);
  EXPECT_FALSE(own.mask.padding_segment);
  EXPECT_EQ(own.score_scale, ScoreScale::dim);
}

}  // namespace
}  // namespace plumbline
