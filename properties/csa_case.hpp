// properties/csa_case.hpp: small problems of the compressor and the indexer of DeepSeek-V4, with documents.
#pragma once
#include <limits>
#include <optional>

#include "properties/problem_generators.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/problem.hpp"
#include "tests/support/stream.hpp"

namespace plumbline::properties {

// Tokens in documents: where each stands, and where it lies in its document.
struct Documents {
  std::vector<std::int32_t> segments, positions;
  std::int64_t count = 0;
};
// `again`: a segment that comes again and again, such as padding.
inline Documents draw_documents(std::int64_t tokens, bool restart,
                                std::optional<std::int32_t> again) {
  Documents made;
  while (static_cast<std::int64_t>(made.segments.size()) < tokens) {
    const std::int64_t left = tokens - static_cast<std::int64_t>(made.segments.size());
    const std::int64_t length = support::pick(1, std::min<std::int64_t>(left, 7));
    const bool pad =
        again && made.count > 0 && made.segments.back() != *again && support::chance(15);
    const auto id = pad ? *again : static_cast<std::int32_t>(2 * made.count + 1);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<std::int32_t>(made.segments.size());
      made.positions.push_back(restart ? static_cast<std::int32_t>(i) : at);
      made.segments.push_back(id);
    }
    ++made.count;
  }
  return made;
}

struct CompressCase {
  std::int64_t B, S, m, D;
  bool overlap, segments, by_segments, document_grid, padded;
  std::uint64_t seed;
  Documents documents;
  Problem problem;

  std::int64_t width() const { return overlap ? 2 * D : D; }
  std::int64_t blocks() const {  // physical grid
    return S / m;
  }
  std::vector<double> values(const std::string& name, const Shape& shape) const {
    return support::Stream(seed, name).reals(count_of(shape), support::Contents::dyadic);
  }
  void real(const std::string& name, const Shape& shape) {
    support::put_in(problem, name, support::f64s(shape, values(name, shape)));
  }
  // The rule of the page, written a second time.
  bool follows(std::int64_t before, std::int64_t first) const {
    const auto at = [](std::int64_t s) { return static_cast<std::size_t>(s); };
    if (by_segments || document_grid)
      return documents.segments[at(before)] == documents.segments[at(first)];
    if (!segments) return first == before + m;
    return documents.positions[at(first)] == documents.positions[at(before)] + m;
  }
};

enum class Arrangement { any, document_grid, by_segments };
inline CompressCase draw_compress(Arrangement kind) {
  CompressCase c;
  const bool document_grid = c.document_grid = kind == Arrangement::document_grid;
  c.B = kind == Arrangement::any ? support::pick(1, 2) : 1;
  c.m = support::pick(1, 4);
  c.S = support::pick(0, 19);
  c.D = support::pick(1, 3);
  c.overlap = support::chance(75);
  c.seed = static_cast<std::uint64_t>(support::pick(0, 1 << 20));
  c.segments = kind != Arrangement::any || support::chance(60);
  c.by_segments = kind == Arrangement::by_segments || (c.segments && support::chance(40));
  c.padded = document_grid && support::chance(70);
  // One arrangement for all batches. On the physical grid an id may return.
  std::optional<std::int32_t> again;
  if (c.padded) again = 0;
  if (kind == Arrangement::any) again = -1;
  c.documents = draw_documents(c.S, support::chance(70), again);
  Json& options = c.problem.options;
  options = {{"m", c.m}, {"overlap", c.overlap}, {"norm", support::chance(70)}};
  options["boundary"] = c.by_segments ? "segments" : "positions";
  if (document_grid) options["grid"] = "document";
  if (c.padded) options["mask"] = {{"padding_segment", 0}};
  if (c.D >= 2 && support::chance(60)) options["rope"] = {{"theta", 100.0}, {"dim", 2}};
  c.real("kv", {c.B, c.S, c.width()}), c.real("gate", {c.B, c.S, c.width()});
  if (support::chance(70)) c.real("position_bias", {c.m, c.width()});
  if (options["norm"] == Json(true) && support::chance(60)) c.real("norm_weight", {c.D});
  if (c.segments) {
    std::vector<std::int32_t> ids, at;
    for (std::int64_t b = 0; b < c.B; ++b) {
      ids.insert(ids.end(), c.documents.segments.begin(), c.documents.segments.end());
      at.insert(at.end(), c.documents.positions.begin(), c.documents.positions.end());
    }
    support::put_in(c.problem, "segment_ids", support::i32s({c.B, c.S}, ids));
    support::put_in(c.problem, "positions", support::i32s({c.B, c.S}, at));
  }
  if (c.overlap && !document_grid && support::chance(65)) {
    c.real("prior_kv", {c.B, c.m, c.width()}), c.real("prior_gate", {c.B, c.m, c.width()});
    std::vector<std::uint8_t> there;
    for (std::int64_t b = 0; b < c.B; ++b) there.push_back(support::chance(45) ? 1 : 0);
    if (support::chance(80))
      support::put_in(c.problem, "prior_present", support::bools({c.B}, there));
  }
  return c;
}

}  // namespace plumbline::properties
