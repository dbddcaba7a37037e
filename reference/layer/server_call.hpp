// reference/layer/server_call.hpp
//
// What one call of a server asks for, whichever layer it runs: no mask but positions and documents, no loss, causal,
// room in the state for the new tokens.
#pragma once
#include "reference/layer/calls.hpp"
#include "reference/tensor/sizes.hpp"

namespace plumbline::layer {

void need_state(const StoredTensor& tensor, const char* name, const char* what);
void refuse_masks(const MaskInputs& masks);
void check_server_options(bool loss, const MaskOptions& mask);
// length [B]: each from 0 to P, and L more fit.
void check_lengths(const StoredTensor& length, const Sizes& sizes);
// The tokens of sequence b: positions default to before + i, documents to 0.
NewTokens new_tokens(const StoredTensor& x, const StoredTensor& positions,
                     const StoredTensor& segment_ids, std::int64_t b, std::int64_t before);

}  // namespace plumbline::layer
