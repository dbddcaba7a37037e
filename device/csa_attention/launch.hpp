// device/csa_attention/launch.hpp
//
// The attention of DeepSeek-V4: `near` is the window over tokens, `far` the compressed blocks that an
// indexer has selected; each row of either is one latent, key and value at once, for all heads.
// Widths: D = Dv up to 512. f32 sums and lse; output in `type`. The forward has one result in every
// order; gradients of keys are added by atomics.
#pragma once
#include "device/pieces/attention.hpp"

namespace plumbline::device {

std::size_t csa_attention_backward_workspace(const AttentionBackward& args);  // bytes

PLUMBLINE_LAUNCHER(csa_attention, Attention)
// bf16, D a multiple of 8, rows aligned to 16 bytes; no max_logit.
PLUMBLINE_LAUNCHER(csa_attention_fast, Attention)
// The same for sm_90a.
PLUMBLINE_LAUNCHER(csa_attention_fast90, Attention)
PLUMBLINE_LAUNCHER(csa_attention_backward, AttentionBackward)

}  // namespace plumbline::device
