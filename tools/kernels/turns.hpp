// tools/kernels/turns.hpp: tables of cosines and sines as a serving framework would make them, from
// the formulas of docs/ops/rope.md and not through reference/rope, which judges what comes of them.
#pragma once
#include <vector>

#include "device/pieces/rotation.hpp"
#include "tools/kernels/kernel.hpp"

namespace plumbline {

// options: an object "rope" with every field; width: channels of a row.
device::Rotary rotary_on(Bench& bench, const Json& options, std::int64_t width,
                         const std::vector<std::int64_t>& positions);

// Positions of tokens [B, S] in rows: in.positions, or 0 … S−1.
std::vector<std::int64_t> positions_of(const Problem& problem, std::int64_t batch,
                                       std::int64_t tokens);

}  // namespace plumbline
