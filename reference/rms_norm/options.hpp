// reference/rms_norm/options.hpp: the options of rms_norm and layer_norm, which are the same.
#pragma once
#include <string>

#include "reference/error.hpp"
#include "reference/numeric/constants.hpp"

namespace plumbline {

inline constexpr double default_norm_eps = 1e-6;

struct NormOptions {
  double eps = default_norm_eps;
  template <class Visitor> void fields(Visitor& v) {
    v("eps", eps, "added to the mean square or the variance; >= 0");
  }
};

inline void check_eps(double eps, const std::string& where = "option eps") {
  if (eps < 0) throw Error(where, decimal(eps), "eps >= 0");
}

}  // namespace plumbline
