// reference/mla_projection/options.hpp: the options of the MLA projections, described once;
// docs/ops/mla_projection.md.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "reference/rms_norm/options.hpp"
#include "reference/rope/options.hpp"

namespace plumbline::mla_projection {

struct Options {
  std::optional<std::int64_t> nope_dim, rope_dim, v_dim;
  double eps = default_norm_eps;
  RopeOptions rope;
  double mscale = 1;
  std::int64_t max_position = 0, original_max_position = 0;

  template <class Visitor> void fields(Visitor& v) {
    v("nope_dim", nope_dim, "dn, channels of query and key that are not rotated; required");
    v("rope_dim", rope_dim, "dr, channels that are; required, even");
    v("v_dim", v_dim, "dv, channels of a value; required");
    v("eps", eps, "of the norms of both latents; >= 0");
    v("rope", rope, "the rotation; theta and dim are required, dim is rope_dim");
    v("mscale", mscale, "the query's factor for a longer context is (0.1 mscale ln(factor) + 1)^2");
    v("max_position", max_position,
      "context length; that factor enters where this exceeds the next; 0 = not set");
    v("original_max_position", original_max_position,
      "context length of the training; 0 = not set");
  }
  bool operator==(const Options&) const = default;
};

}  // namespace plumbline::mla_projection
