// device/pieces/attention.hpp
//
// What the attentions share, as launchers take it. Query rows [B, T], and for each of them its keys: a
// stretch of neighbours in one pool (`near`: a window, or all that a causal row sees), then slots that
// name rows of another (`far`: what an indexer has selected). The two pools may be one.
//
//     c = scale·q·k     p = exp(c − ln(Σ exp c + exp sink))     output = Σ p·v     lse = ln Σ exp c
#pragma once
#include <cstddef>

#include "device/plain.hpp"

namespace plumbline::device {

// Head h of H uses key head floor(h·G/H).
struct KeyPool {
  std::int64_t rows = 0;        // of each batch
  const void* key = nullptr;    // B rows G D
  const void* value = nullptr;  // B rows G Dv; null: the first Dv channels of key
};
// How a log-sum-exp is written down.
struct LseForm {
  bool base_two = false, counts_sink = false;
  bool empty_is_sink = false;  // lse of a row without keys: its sink, else `empty`
  float empty = 0;
};

struct Attention {
  Type type = Type::bf16;  // of all tensors but lse
  std::int64_t batch = 0, rows = 0, heads = 0, groups = 1, width = 0,
               value_width = 0;  // B T H G D Dv
  const void* query = nullptr;   // B T H D
  KeyPool near, far;
  // B T 2: the first row of `near` and how many follow; −1 of them: the row is not real.
  const std::int32_t* stretch = nullptr;
  std::int64_t slots = 0;  // k, may be 0
  const std::int32_t* slot =
      nullptr;                 // B T k: rows of `far`, each as often as it counts; −1: empty
  const void* sink = nullptr;  // H, natural and not scaled, may be infinite; or null
  float scale = 1;
  LseForm lse_form;
  void* output = nullptr;      // B T H Dv
  float* lse = nullptr;        // B T H
  float* max_logit = nullptr;  // B T H, or null
};

// output and lse of `of` are read: what the forward pass has left.
struct AttentionBackward {
  Attention of;
  const void* doutput = nullptr;  // B T H Dv
  const void* dlse = nullptr;     // B T H, or null
  float* dquery = nullptr;        // B T H D
  // Added to, by atomics: they start from zero, or from another gradient.
  float *dnear_key = nullptr,
        *dnear_value = nullptr;  // as the pool; of values only where it has some
  float *dfar_key = nullptr, *dfar_value = nullptr;
  float* dsink = nullptr;  // H; null without a sink
  float* workspace = nullptr;
};

}  // namespace plumbline::device
