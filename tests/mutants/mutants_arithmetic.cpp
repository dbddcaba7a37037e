// Right formulas in fewer bits than the kernel says it has.
#include "tests/mutants/mutants.hpp"

namespace plumbline::mutants {
namespace {

Contract stored(Point point, Format format) {
  Contract contract;
  contract.rounding_points[static_cast<std::size_t>(point)] = format;
  return contract;
}
Contract summed_in(Format format, Accumulator::Rounding rounding = Accumulator::Rounding::nearest) {
  Contract contract;
  contract.accumulator.format = format;
  contract.accumulator.rounding = rounding;
  return contract;
}
Contract flushing() {
  Contract contract;
  contract.flush_to_zero = true;
  return contract;
}

}  // namespace

Mutants of_arithmetic() {
  return {
      {"probabilities in bf16", "mla_attention", "weights are rounded before the second product",
       nullptr, nullptr, stored(Point::probabilities, Format::bf16)},
      {"probabilities in fp8", "csa_attention", "the same in e4m3", nullptr, nullptr,
       stored(Point::probabilities, Format::f8_e4m3)},
      {"dscores in bf16", "csa_attention", "dS is rounded before it meets keys and queries",
       nullptr, nullptr, stored(Point::dscores, Format::bf16)},
      {"accumulator in bf16", "mla_attention", "every sum is kept in bf16", nullptr, nullptr,
       summed_in(Format::bf16)},
      {"accumulator in f16", "indexer_scores", "every sum is kept in f16", nullptr, nullptr,
       summed_in(Format::f16)},
      {"accumulator in tf32", "linear, long", "every sum is kept in 11 bits", nullptr, nullptr,
       summed_in(Format::tf32)},
      {"accumulator in bf16", "csa_compress", "every sum is kept in bf16", nullptr, nullptr,
       summed_in(Format::bf16)},
      {"index scores in bf16", "dsa_indexer_loss, from the indexer",
       "scores are stored between two kernels", nullptr, nullptr,
       stored(Point::index_scores, Format::bf16)},
      {"head sum in bf16", "csa_indexer_loss", "the sum over heads is reduced in bf16", nullptr,
       nullptr, stored(Point::head_sum, Format::bf16)},
      {"target in bf16", "csa_indexer_loss", "the target is stored between forward and backward",
       nullptr, nullptr, stored(Point::target, Format::bf16)},
      {"norm in bf16", "mla_projection", "the normalised latent is stored in bf16", nullptr,
       nullptr, stored(Point::norm_out, Format::bf16)},
      {"rotation in bf16", "rope", "rotated channels are stored in bf16", nullptr, nullptr,
       stored(Point::rope_out, Format::bf16)},
      {"subnormals flushed", "linear", "results below 2^-126 become 0", nullptr, nullptr,
       flushing()},
  };
}

}  // namespace plumbline::mutants
