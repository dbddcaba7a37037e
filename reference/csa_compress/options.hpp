// reference/csa_compress/options.hpp: the options of the compressor, described once; docs/ops/csa_compress.md.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reference/mask/mask.hpp"
#include "reference/rms_norm/options.hpp"
#include "reference/rope/options.hpp"

namespace plumbline::csa_compress {

// What makes block j start anew on the physical grid: a position that does not follow, or another segment.
enum class Boundary { positions, segments };
inline std::span<const std::string_view> names_of(Boundary) {
  static constexpr std::string_view names[] = {"positions", "segments"};
  return names;
}

// The one thing of a mask that matters before anybody looks: which segment forms no block.
struct Padding {
  std::optional<std::int64_t> padding_segment;
  template <class Visitor> void fields(Visitor& v) {
    v("padding_segment", padding_segment,
      "tokens of this segment form no block (grid document; without use on the physical grid)");
  }
};

struct Options {
  std::optional<std::int64_t> m;
  bool overlap = true, norm = true;
  double eps = default_norm_eps;
  std::optional<RopeOptions> rope;
  Boundary boundary = Boundary::positions;
  Grid grid = Grid::physical;
  Padding mask;

  template <class Visitor> void fields(Visitor& v) {
    v("m", m, "tokens per block; >= 1; required");
    v("overlap", overlap, "lane A pools the block before; false: one lane, as in HCA");
    v("norm", norm, "rms_norm of the pooled block, unweighted without norm_weight");
    v("eps", eps, "of that norm; >= 0");
    v("rope", rope, "rotation at the position of the block's first token; null: none");
    v("boundary", boundary,
      "lane A is cut where positions do not follow, or where the segment changes");
    v("grid", grid, "blocks are cut from token 0, or inside each document");
    v("mask", mask, "the padding segment");
  }
};

}  // namespace plumbline::csa_compress
