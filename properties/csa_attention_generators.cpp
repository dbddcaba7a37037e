// properties/csa_attention_generators.cpp: problems of csa_attention for properties of all operations.
#include "properties/csa_attention_case.hpp"
#include "properties/problem_generators.hpp"

namespace plumbline::properties {
namespace {

GeneratedProblem attention() {
  CsaWish wish;
  wish.infinite_sinks = false;
  const CsaCase x = draw_csa_case(wish);
  std::int64_t keys = 1;
  for (std::int64_t b = 0; b < x.B; ++b) {
    for (std::int64_t t = 0; t < x.T; ++t)
      keys = std::max(keys, x.tokens_of(b, t) + x.blocks_of(b, t));
  }
  GeneratedProblem made;
  made.problem = x.problem;
  made.heads = x.H, made.keys = keys, made.tokens = x.S;
  return made;
}

const bool listed[] = {add_generator("csa_attention", attention)};

}  // namespace
}  // namespace plumbline::properties
