// device/mla_projection/launch.hpp
//
// From x to query, key and value of multi-head latent attention, and all gradients.
//     q_raw = x·wq_a + bq_a,  q_latent = rms_norm(q_raw),  query = scale·[nope, R pe] of q_latent·wq_b
//     kv_raw = x·wkv_a + bkv_a = latent | pe,  kv_latent = rms_norm(latent),  k_pe = R pe
//     key = [k_nope, k_pe], value: k_nope | value of kv_latent·wkv_b
// No product is split afterwards: sums go from registers, past bias, rotation and scale, to where
// they belong. `sliced` contracts the two parts of wq_b and wkv_b one by one, read where they lie.
// Raw latents stay in f32, normed ones are stored in `type` before they are multiplied; gradients
// between parts and results are f32. No atomics: every sum has one order.
#pragma once
#include <cstddef>

#include "device/pieces/rotation.hpp"
#include "device/plain.hpp"

namespace plumbline::device {

struct MlaProjection {
  Type type = Type::bf16;                            // of every tensor here
  std::int64_t rows = 0, width = 0, heads = 0;       // B·S, E, H
  std::int64_t q_rank = 0, kv_rank = 0;              // Rq (0: direct), Rkv
  std::int64_t nope = 0, rope = 0, value_width = 0;  // dn, dr, dv
  float eps = 0, scale = 1;
  bool sliced = false;
  Rotary rotary;                  // rows, start 0, dim dr
  const void* x = nullptr;        // rows E
  const void* wq_a = nullptr;     // E Rq; null: direct
  const void* q_norm = nullptr;   // Rq
  const void* wq_b = nullptr;     // Rq H dn+dr, or wq: E H dn+dr
  const void* wkv_a = nullptr;    // E Rkv+dr
  const void* kv_norm = nullptr;  // Rkv
  const void* wkv_b = nullptr;    // Rkv H dn+dv
  const void* bq_a = nullptr;     // each may be null
  const void* bq_b = nullptr;     // of wq_b or wq
  const void* bkv_a = nullptr;
  const void* bkv_b = nullptr;
  void* query = nullptr;      // rows H dn+dr
  void* key = nullptr;        // rows H dn+dr
  void* value = nullptr;      // rows H dv
  void* q_latent = nullptr;   // rows Rq; not for direct
  void* kv_latent = nullptr;  // rows Rkv
  void* k_pe = nullptr;       // rows dr
  float* workspace = nullptr;
};
std::size_t mla_projection_workspace(const MlaProjection& args);  // bytes

struct MlaProjectionBackward {
  MlaProjection of;  // with the latents that its forward made; other outputs and workspace not used
  // Cotangents of the outputs; a null one is 0.
  const void *dquery = nullptr, *dkey = nullptr, *dvalue = nullptr, *dq_latent = nullptr,
             *dkv_latent = nullptr, *dk_pe = nullptr;
  float *dx = nullptr, *dwq_a = nullptr, *dq_norm = nullptr, *dwq_b = nullptr, *dwkv_a = nullptr,
        *dkv_norm = nullptr, *dwkv_b = nullptr;
  float *dbq_a = nullptr, *dbq_b = nullptr, *dbkv_a = nullptr, *dbkv_b = nullptr;
  float* workspace = nullptr;
};
std::size_t mla_projection_backward_workspace(const MlaProjectionBackward& args);  // bytes

PLUMBLINE_LAUNCHER(mla_projection, MlaProjection)
PLUMBLINE_LAUNCHER(mla_projection_backward, MlaProjectionBackward)

}  // namespace plumbline::device
