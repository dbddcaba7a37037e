#include "tools/kernels/turns.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plumbline {
namespace {

std::vector<long double> frequencies(const Json& options) {
  const auto theta = static_cast<long double>(options.at("theta").get<double>());
  const auto dim = options.at("dim").get<std::int64_t>();
  std::vector<long double> list;
  for (std::int64_t i = 0; i < dim / 2; ++i)
    list.push_back(
        std::pow(theta, -2 * static_cast<long double>(i) / static_cast<long double>(dim)));
  const Json yarn = options.value("yarn", Json());
  if (yarn.is_null()) return list;
  const auto factor = static_cast<long double>(yarn.at("factor").get<double>());
  const auto length = static_cast<long double>(yarn.at("original_max_position").get<double>());
  const auto pair = [&](const char* beta) {
    const long double turns = length / (2 * std::numbers::pi_v<long double> *
                                        static_cast<long double>(yarn.at(beta).get<double>()));
    return static_cast<long double>(dim) * std::log(turns) / (2 * std::log(theta));
  };
  long double low = pair("beta_fast"), high = pair("beta_slow");
  if (yarn.at("truncate").get<bool>()) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0L), high = std::min(high, static_cast<long double>(dim - 1));
  if (low == high) high += 0.001L;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const long double along =
        std::clamp((static_cast<long double>(i) - low) / (high - low), 0.0L, 1.0L);
    list[i] = list[i] / factor * along + list[i] * (1 - along);
  }
  return list;
}

}  // namespace

device::Rotary rotary_on(Bench& bench, const Json& options, std::int64_t width,
                         const std::vector<std::int64_t>& positions) {
  const std::vector<long double> list = frequencies(options);
  const bool inverse = options.at("inverse").get<bool>();
  const auto factor = static_cast<long double>(options.at("attention_factor").get<double>());
  std::vector<float> cosine, sine;
  for (const std::int64_t position : positions) {
    for (const long double frequency : list) {
      const long double angle =
          static_cast<long double>(inverse ? -position : position) * frequency;
      cosine.push_back(static_cast<float>(factor * std::cos(angle)));
      sine.push_back(static_cast<float>(factor * std::sin(angle)));
    }
  }
  device::Rotary rotary;
  rotary.cosine = bench.table("cosine", cosine);
  rotary.sine = bench.table("sine", sine);
  rotary.rows = static_cast<std::int64_t>(positions.size());
  rotary.dim = options.at("dim").get<std::int64_t>();
  rotary.start = options.at("placement") == "leading" ? 0 : width - rotary.dim;
  const bool natural = options.at("pairing") == "half";
  const bool named = natural || options.at("output") == "half";
  rotary.source_half = inverse ? named : natural;
  rotary.result_half = inverse ? natural : named;
  return rotary;
}

std::vector<std::int64_t> positions_of(const Problem& problem, std::int64_t batch,
                                       std::int64_t tokens) {
  std::vector<std::int64_t> list;
  const auto found = problem.in.find("positions");
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t s = 0; s < tokens; ++s)
      list.push_back(found == problem.in.end() ? s : integer_at(found->second, {b, s}));
  }
  return list;
}

}  // namespace plumbline
