// tools/kernels/attention.hpp: what the attentions' problems share, as their launchers take it.
#pragma once
#include "device/pieces/attention.hpp"
#include "reference/mask/mask.hpp"
#include "tools/kernels/kernel.hpp"

namespace plumbline {

// Sizes, query, sink, scale, the form of lse, and who sees whom. window: keys are those tokens (near) and
// selected keys (far); without, the selected keys alone, as a stretch where all rows have neighbours only.
device::Attention attention_on(Bench& bench, const Problem& problem, const Json& options,
                               const MaskView& view);
// Results of the forward pass, the launcher's and the problem's.
void attention_results(Bench& bench, device::Attention& args, const Problem& problem,
                       bool max_logit);
// Cotangents and the gradients of query and sink.
device::AttentionBackward attention_back_on(Bench& bench, const device::Attention& args,
                                            const Problem& problem);

// bf16: weights and score gradients stored in bf16 as the tensor core takes them; lse in f32.
Json attention_contract(const Problem& problem);

}  // namespace plumbline
