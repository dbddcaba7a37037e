// reference/numeric/contract.hpp
//
// Names that an operation's text shares with the bounds: the places where a kernel may store an intermediate in
// fewer bits, and the numbers that every element of a row has in common.
#pragma once

namespace plumbline {

enum class Point {
  proj_out,
  norm_out,
  rope_out,
  index_scores,
  scores,
  probabilities,
  head_sum,
  target,
  output,
  delta,
  dscores
};
enum class Symbol { log_sum_exp, delta, target_normaliser, sum_of_u };

}  // namespace plumbline
