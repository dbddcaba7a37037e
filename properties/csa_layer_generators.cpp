// properties/csa_layer_generators.cpp: problems of the CSA layer and its calls for properties of all operations. No
// loss and the physical grid, so that every schedule applies; csa_layer_property.cpp has the others.
#include "properties/csa_layer_case.hpp"

namespace plumbline::properties {
namespace {

GeneratedProblem layer() {
  const CsaLayerSizes n = draw_csa_layer_sizes(all_kinds);
  CsaLayerWriter write(n);
  write.whole_layer();
  Problem& problem = write.made.problem;
  std::int64_t rows = n.S;
  if (support::chance(30)) {
    rows = support::pick(1, n.S);
    std::vector<std::int32_t> standing;
    for (const std::int64_t s : support::Stream(n.seed, "row_index").shuffled(n.S)) {
      if (static_cast<std::int64_t>(standing.size()) < rows)
        standing.push_back(static_cast<std::int32_t>(s));
    }
    support::put_in(problem, "row_index", support::i32s({rows}, standing));
  }
  if (n.kind != "window" && support::chance(30)) {
    support::Flags flags;
    support::Stream stream(n.seed, "valid");
    for (std::int64_t i = 0; i < n.B * rows * n.blocks(); ++i)
      flags.push_back(stream.chance(75) ? 1 : 0);
    support::put_in(problem, "valid", support::bools({n.B, rows, n.blocks()}, flags));
  }
  write.cot("output", {n.B, rows, n.E});
  return write.made;
}

// States with garbage beyond their length: nobody may read it.
GeneratedProblem step() {
  CsaLayerSizes n = draw_csa_layer_sizes(all_kinds);
  n.S = support::pick(1, 6);
  n.documents = false;
  CsaLayerWriter write(n);
  write.weights();
  write.real("x", {n.B, n.S, n.E});
  std::vector<std::int32_t> lengths, positions, segments;
  std::vector<std::uint8_t> present;
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < n.B; ++b) {
    lengths.push_back(static_cast<std::int32_t>(support::pick(0, 7)));
    longest = std::max<std::int64_t>(longest, lengths.back());
    present.push_back(support::chance(70) ? 1 : 0);
  }
  const std::int64_t capacity = longest + n.S + support::pick(0, 2);
  const auto length = [&](std::int64_t b) {
    return std::int64_t{lengths[static_cast<std::size_t>(b)]};
  };
  write.state("kv", capacity, n.D, length);
  const auto pool = [&](const std::string& of, const char* blocks, std::int64_t width,
                        std::int64_t lanes) {
    const auto partial = [&](std::int64_t b) { return length(b) % n.m; };
    const auto prior = [&](std::int64_t b) {
      return present[static_cast<std::size_t>(b)] != 0 ? n.m : 0;
    };
    write.state(blocks, capacity / n.m, width, [&](std::int64_t b) { return length(b) / n.m; });
    write.state(of + "partial_kv", n.m, lanes, partial);
    write.state(of + "partial_gate", n.m, lanes, partial);
    if (n.kind != "csa") return;
    write.state(of + "prior_kv", n.m, lanes, prior);
    write.state(of + "prior_gate", n.m, lanes, prior);
  };
  Problem& problem = write.made.problem;
  if (n.kind != "window") pool("", "compressed", n.D, n.lanes());
  if (n.indexer) pool("indexer_", "indexer_index_k", n.e, 2 * n.e);
  if (n.kind == "csa")
    support::put_in(problem, "state.prior_present", support::bools({n.B}, present));
  // One or two documents before; the new tokens go on with the last.
  for (std::int64_t b = 0; b < n.B; ++b) {
    const std::int64_t cut = support::chance(40) ? length(b) / 2 : 0;
    for (std::int64_t s = 0; s < capacity; ++s) {
      const bool live = s < length(b);
      positions.push_back(live ? static_cast<std::int32_t>(s) : -77);
      segments.push_back(live ? (s < cut ? 3 : 0) : 55);
    }
  }
  support::put_in(problem, "state.length", support::i32s({n.B}, lengths));
  support::put_in(problem, "state.positions", support::i32s({n.B, capacity}, positions));
  support::put_in(problem, "state.segment_ids", support::i32s({n.B, capacity}, segments));
  write.made.keys = capacity;
  return write.made;
}

const bool listed[] = {add_generator("csa_layer", layer), add_generator("csa_step", step)};

}  // namespace
}  // namespace plumbline::properties
