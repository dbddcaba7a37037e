// properties/csa_compress_property.cpp
//
// The compressor over random tokens, documents, priors and rests: calls that carry what the call before returned,
// what a token can change, what a document can see, what nobody reads. Each compares bits.
#include "properties/csa_case.hpp"

namespace plumbline::properties {
namespace {

using support::difference;
using support::put_in;

Result eval(const Problem& problem, Precision precision, bool backward = false, int threads = 1) {
  const Evaluation how{
      .precision = precision, .forward = true, .backward = backward, .threads = threads};
  return operation("csa_compress").evaluate(problem, how);
}
Precision some_precision() {
  return support::one_of<Precision>({Precision::f64, Precision::f192, Precision::mp50});
}
Arrangement some_arrangement(int percent_of_documents) {
  return support::chance(percent_of_documents) ? Arrangement::document_grid : Arrangement::any;
}
std::vector<double> block_of(const Value& compressed, std::int64_t b, std::int64_t j) {
  const std::int64_t width = compressed.shape[2], at = (b * compressed.shape[1] + j) * width;
  std::vector<double> both(compressed.high.begin() + at, compressed.high.begin() + at + width);
  both.insert(both.end(), compressed.low.begin() + at, compressed.low.begin() + at + width);
  return both;
}
StoredTensor copy_of(const Value& value) { return support::f64s(value.shape, value.high); }

// leftover [B, r, W] in front of tokens [first, last) of x [B, S, W].
StoredTensor in_front(const Value* leftover, const StoredTensor& x, std::int64_t first,
                      std::int64_t last) {
  const std::int64_t rest = leftover == nullptr ? 0 : leftover->shape[1], width = x.size(2);
  std::vector<double> values;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    for (std::int64_t i = 0; i < rest * width; ++i)
      values.push_back(leftover->high[static_cast<std::size_t>(b * rest * width + i)]);
    for (std::int64_t s = first; s < last; ++s) {
      for (std::int64_t i = 0; i < width; ++i) values.push_back(element<double>(x, {b, s, i}));
    }
  }
  return support::f64s({x.size(0), rest + last - first, width}, values);
}

// A server that is fed a few tokens at a time. It does what the page asks of a caller: rests in front, the prior
// handed on, and its flag cleared where the next block belongs to another document.
class Server {
 public:
  explicit Server(const CompressCase& whole) : c_(whole), state_(whole.problem) {}

  void feed(std::int64_t first, std::int64_t last, Precision precision) {
    Problem call = state_;
    const Value* kv = any_ ? state_result_.find("leftover_kv") : nullptr;
    const Value* gate = any_ ? state_result_.find("leftover_gate") : nullptr;
    const std::int64_t start = first - (kv == nullptr ? 0 : kv->shape[1]);
    put_in(call, "kv", in_front(kv, c_.problem.in.at("kv"), first, last));
    put_in(call, "gate", in_front(gate, c_.problem.in.at("gate"), first, last));
    for (const char* name : {"positions", "segment_ids"}) {
      const auto given = c_.problem.in.find(name);
      if (given != c_.problem.in.end())
        put_in(call, name, support::take(given->second, 1, support::range(start, last)));
    }
    // Without positions a call would count from 0.
    if (!c_.segments) {
      std::vector<std::int32_t> at;
      for (std::int64_t b = 0; b < c_.B; ++b) {
        for (std::int64_t s = start; s < last; ++s) at.push_back(static_cast<std::int32_t>(s));
      }
      put_in(call, "positions", support::i32s({c_.B, last - start}, at));
    }
    if (any_ && c_.overlap) hand_on(call, start);
    Result result = eval(call, precision);
    const std::int64_t made = result.find("compressed")->shape[1];
    if (made > 0) last_block_ = start + (made - 1) * c_.m;
    without_block = without_block || made == 0;
    rests = rests || start < first;
    for (std::int64_t b = 0; b < c_.B; ++b) {
      for (std::int64_t j = 0; j < made; ++j)
        blocks[static_cast<std::size_t>(b)].push_back(block_of(*result.find("compressed"), b, j));
    }
    state_result_ = std::move(result);
    any_ = true;
  }
  const Result& last_result() const { return state_result_; }

  std::vector<std::vector<double>> blocks[2];
  bool without_block = false, rests = false, cut = false;

 private:
  void hand_on(Problem& call, std::int64_t start) {
    put_in(call, "prior_kv", copy_of(*state_result_.find("prior_kv")));
    put_in(call, "prior_gate", copy_of(*state_result_.find("prior_gate")));
    std::vector<std::uint8_t> there = state_result_.find("prior_present")->booleans;
    if (last_block_ >= 0 && start < c_.S && !c_.follows(last_block_, start)) {
      for (std::uint8_t& flag : there) flag = 0;
      cut = true;
    }
    put_in(call, "prior_present", support::bools({c_.B}, there));
  }

  const CompressCase& c_;
  Problem state_;
  Result state_result_;
  std::int64_t last_block_ = -1;
  bool any_ = false;
};

TEST(CsaCompress, CallsThatCarryAreOneCall) {
  support::property([](support::Distribution& d) {
    const CompressCase c = draw_compress(Arrangement::any);
    const Precision precision = some_precision();
    const Result whole = eval(c.problem, precision);
    Server server(c);
    int calls = 0;
    for (std::int64_t first = 0; first < c.S || calls == 0; ++calls) {
      const std::int64_t last = std::min(c.S, first + support::pick(calls == 0 ? 0 : 1, 6));
      server.feed(first, last, precision);
      first = last;
    }
    const Value& compressed = *whole.find("compressed");
    for (std::int64_t b = 0; b < c.B; ++b) {
      const auto& found = server.blocks[b];
      RC_ASSERT(static_cast<std::int64_t>(found.size()) == c.blocks());
      for (std::int64_t j = 0; j < c.blocks(); ++j)
        RC_ASSERT(found[static_cast<std::size_t>(j)] == block_of(compressed, b, j));
    }
    for (const char* name : {"prior_kv", "prior_gate", "leftover_kv", "leftover_gate"}) {
      const Value* found = server.last_result().find(name);
      RC_ASSERT((found == nullptr) == (whole.find(name) == nullptr));
      if (found != nullptr) RC_ASSERT(found->high == whole.find(name)->high);
    }
    d.needs("several calls", calls > 1);
    d.needs("rests", server.rests);
    d.needs("a call without a block", server.without_block);
    d.needs("a prior that is cut", server.cut);
    d.needs("no lane A", !c.overlap);
    d.needs("S < m", c.S < c.m);
    d.needs("a ragged tail", c.S % c.m != 0);
  });
}

TEST(CsaCompress, ATokenChangesItsOwnBlockAndTheNext) {
  support::property([](support::Distribution& d) {
    CompressCase c = draw_compress(Arrangement::any);
    if (c.S == 0) RC_DISCARD("no token");
    const Result before = eval(c.problem, Precision::f64);
    const std::int64_t b = support::pick(0, c.B - 1), rest = c.S % c.m,
                       least = rest > 0 && support::chance(30) ? c.S - rest : 0,
                       token = support::pick(least, c.S - 1);
    for (const char* name : {"kv", "gate"}) {
      std::vector<double> values = c.values(name, {c.B, c.S, c.width()});
      for (std::int64_t i = 0; i < c.width(); ++i) {
        double& value = values[static_cast<std::size_t>((b * c.S + token) * c.width() + i)];
        value = 5.5 - value;
      }
      put_in(c.problem, name, support::f64s({c.B, c.S, c.width()}, values));
    }
    const Result after = eval(c.problem, Precision::f64);
    const std::int64_t own = token / c.m;
    bool moved = false, next_moved = false;
    for (std::int64_t at = 0; at < c.B; ++at) {
      for (std::int64_t j = 0; j < c.blocks(); ++j) {
        const bool same = block_of(*before.find("compressed"), at, j) ==
                          block_of(*after.find("compressed"), at, j);
        const bool lane_a = c.overlap && j == own + 1 && c.follows(own * c.m, j * c.m);
        RC_ASSERT(same || (at == b && (j == own || lane_a)));
        moved = moved || (!same && j == own);
        next_moved = next_moved || (!same && j == own + 1);
      }
    }
    d.needs("its own block moves", moved);
    d.needs("the next one moves", next_moved);
    d.needs("a token of no block", own >= c.blocks());
  });
}

// On the document grid a document alone, with its own positions; on the physical grid, boundary segments, other
// documents' numbers.
TEST(CsaCompress, ADocumentDoesNotDependOnItsNeighbours) {
  support::property("document grid", [](support::Distribution& d) {
    const CompressCase c = draw_compress(Arrangement::document_grid);
    const Precision precision = some_precision();
    const Result whole = eval(c.problem, precision);
    std::int64_t block = 0, documents = 0, rests = 0, padding = 0;
    for (std::int64_t first = 0; first < c.S;) {
      std::int64_t last = first;
      const auto id = [&](std::int64_t s) {
        return c.documents.segments[static_cast<std::size_t>(s)];
      };
      while (last < c.S && id(last) == id(first)) ++last;
      if (c.padded && id(first) == 0) {
        ++padding;
      } else {
        Problem alone = c.problem;
        for (const char* name : {"kv", "gate", "positions", "segment_ids"})
          put_in(alone, name, support::take(c.problem.in.at(name), 1, support::range(first, last)));
        const Result single = eval(alone, precision);
        const Value& compressed = *single.find("compressed");
        RC_ASSERT(compressed.shape[1] == (last - first) / c.m);
        for (std::int64_t j = 0; j < compressed.shape[1]; ++j)
          RC_ASSERT(block_of(compressed, 0, j) ==
                    block_of(*whole.find("compressed"), 0, block + j));
        block += compressed.shape[1];
        ++documents;
        rests += (last - first) % c.m != 0 ? 1 : 0;
      }
      first = last;
    }
    RC_ASSERT(whole.find("compressed")->shape[1] == block);
    d.needs("several documents", documents > 1);
    d.needs("a document with a rest", rests > 0);
    d.needs("padding", padding > 0);
    d.needs("several blocks", block > 1);
  });
  support::property("boundary segments", [](support::Distribution& d) {
    CompressCase c = draw_compress(Arrangement::by_segments);
    if (c.S == 0) RC_DISCARD("no token");
    c.problem.in.erase("prior_kv"), c.problem.in.erase("prior_gate");
    c.problem.in.erase("prior_present");
    const Result whole = eval(c.problem, Precision::f64);
    const auto id = [&](std::int64_t s) {
      return c.documents.segments[static_cast<std::size_t>(s)];
    };
    const std::int32_t kept = id(support::pick(0, c.S - 1));
    for (const char* name : {"kv", "gate"}) {
      std::vector<double> values = c.values(name, {c.B, c.S, c.width()});
      for (std::int64_t i = 0; i < c.S * c.width(); ++i) {
        if (id(i / c.width()) != kept) values[static_cast<std::size_t>(i)] += 3;
      }
      put_in(c.problem, name, support::f64s({c.B, c.S, c.width()}, values));
    }
    const Result others = eval(c.problem, Precision::f64);
    bool inside = false, beside = false, straddles = false;
    for (std::int64_t j = 0; j < c.blocks(); ++j) {
      bool whole_block = true, touched = false;
      for (std::int64_t s = j * c.m; s < (j + 1) * c.m; ++s) {
        whole_block = whole_block && id(s) == kept;
        touched = touched || id(s) == kept;
      }
      straddles = straddles || (touched && !whole_block);
      if (!whole_block) continue;
      inside = true;
      beside = beside || (j > 0 && id(j * c.m - 1) != kept);
      RC_ASSERT(block_of(*whole.find("compressed"), 0, j) ==
                block_of(*others.find("compressed"), 0, j));
    }
    d.needs("a block inside", inside);
    d.needs("a neighbour in front", beside);
    d.needs("a straddling block", straddles);
  });
}

TEST(CsaCompress, WhatNoBlockReadsChangesNoBit) {
  support::property([](support::Distribution& d) {
    CompressCase c = draw_compress(some_arrangement(40));
    Result before = eval(c.problem, Precision::f64);
    const Shape shape = before.find("compressed")->shape;
    support::put_cot(c.problem, "compressed", support::f64s(shape, c.values("cot", shape)));
    before = eval(c.problem, Precision::f64, true);
    // Tokens of blocks, by walking the documents.
    std::vector<char> read(static_cast<std::size_t>(c.S), 0);
    const auto id = [&](std::int64_t s) {
      return c.document_grid ? c.documents.segments[static_cast<std::size_t>(s)] : 1;
    };
    for (std::int64_t first = 0; first < c.S;) {
      std::int64_t last = first;
      while (last < c.S && id(last) == id(first)) ++last;
      const std::int64_t end = first + (last - first) / c.m * c.m;
      for (std::int64_t s = first; s < end && !(c.padded && id(first) == 0); ++s)
        read[static_cast<std::size_t>(s)] = 1;
      first = last;
    }
    bool any = false, prior = false;
    for (const char* name : {"kv", "gate"}) {
      std::vector<double> values = c.values(name, {c.B, c.S, c.width()});
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto s = static_cast<std::int64_t>(i) / c.width() % c.S;
        if (read[static_cast<std::size_t>(s)] != 0) continue;
        values[i] = support::Stream(c.seed, name).chance(50)
                        ? std::numeric_limits<double>::quiet_NaN()
                        : std::numeric_limits<double>::infinity();
        any = true;
      }
      put_in(c.problem, name, support::f64s({c.B, c.S, c.width()}, values));
      const auto flags = c.problem.in.find("prior_present");
      if (flags == c.problem.in.end() || !c.problem.in.contains("prior_kv")) continue;
      const std::string of_prior = std::string("prior_") + name;
      const Shape rows = {c.B, c.m, c.width()};
      std::vector<double> junk = c.values(of_prior, rows);
      for (std::size_t i = 0; i < junk.size(); ++i) {
        const std::int64_t b = static_cast<std::int64_t>(i) / (c.m * c.width());
        if (boolean_at(flags->second, {b})) continue;
        junk[i] = std::numeric_limits<double>::quiet_NaN();
        prior = true;
      }
      put_in(c.problem, of_prior, support::f64s(rows, junk));
    }
    const Result after = eval(c.problem, Precision::f64, true);
    RC_ASSERT(difference({*before.find("compressed")}, {*after.find("compressed")}) == "");
    RC_ASSERT(difference(before.gradients, after.gradients) == "");
    d.needs("a token of no block", any);
    d.needs("a prior that is not there", prior);
    d.needs("no block", shape[1] == 0);
    d.needs("document grid", c.document_grid);
  });
}

TEST(CsaCompress, NeitherStepNorThreadsChangeABit) {
  support::property([](support::Distribution& d) {
    CompressCase c = draw_compress(some_arrangement(40));
    const Precision precision = some_precision();
    const Result first = eval(c.problem, precision);
    const Shape shape = first.find("compressed")->shape;
    support::put_cot(c.problem, "compressed", support::f64s(shape, c.values("cot", shape)));
    const Result whole = eval(c.problem, precision, true);
    RC_ASSERT(difference(whole, eval(c.problem, precision, true, 3)) == "");
    const std::int64_t step = support::pick(1, 9);
    c.problem.schedule = {{"step", step}};
    RC_ASSERT(difference(whole, eval(c.problem, precision, true)) == "");
    d.needs("a step inside a block", step % c.m != 0 && shape[1] > 0);
    d.needs("a step over several blocks", step > c.m && shape[1] > 1);
    d.needs("several documents", c.segments && c.documents.count > 1);
  });
}

}  // namespace
}  // namespace plumbline::properties
