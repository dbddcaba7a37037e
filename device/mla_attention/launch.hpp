// device/mla_attention/launch.hpp
//
// Attention with heads that share keys (MHA, GQA, MQA), over what a row sees (`near`, a stretch) or over
// selected keys (`far`, slots); both pools may be given as the same tensors, and then so may their
// gradients. Values of their own: D and Dv up to 256; values that are part of keys: D up to 576, the
// absorbed form of latent attention.
// f32 sums and lse; output in `type`. The forward has one result in every order; gradients of keys and
// values are added by atomics.
#pragma once
#include "device/pieces/attention.hpp"

namespace plumbline::device {

std::size_t mla_attention_backward_workspace(const AttentionBackward& args);  // bytes

PLUMBLINE_LAUNCHER(mla_attention, Attention)
PLUMBLINE_LAUNCHER(mla_attention_backward, AttentionBackward)

}  // namespace plumbline::device
