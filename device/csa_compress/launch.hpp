// device/csa_compress/launch.hpp
//
// Tokens pooled into blocks: for each channel a softmax over the gates of the block's own m tokens and,
// in lane A, of the block before; then rms_norm and a rotation; and all gradients. Sums in f32; what
// is copied keeps its bits; gradients in f32. No atomics: every sum has one order.
//
// Where blocks lie and what stands in lane A are three tables of integers, made by the caller: grids,
// documents and padding need no text here.
#pragma once
#include <cstddef>

#include "device/pieces/rotation.hpp"
#include "device/plain.hpp"

namespace plumbline::device {

enum class Before : std::int32_t { nothing, prior, block };  // what stands in lane A

struct CsaCompress {
  Type type = Type::bf16;                                            // of every real tensor
  std::int64_t batch = 0, tokens = 0, blocks = 0, m = 1, width = 0;  // B S N m D
  std::int64_t lanes = 2;                                            // L; 1: no lane A
  bool norm = true;
  float eps = 0;
  bool rests = true;  // blocks are cut from token 0: leftovers and priors for a next call
  Rotary rotary;      // rows are blocks, B N; dim 0: none
  const std::int32_t* first = nullptr;     // N: first token of each block
  const std::int32_t* before = nullptr;    // B N
  const std::int32_t* block_of = nullptr;  // S: block of a token, or -1
  const void* kv = nullptr;                // B S L·D
  const void* gate = nullptr;
  const void* position_bias = nullptr;  // m L·D, or null
  const void* norm_weight = nullptr;    // D, or null
  const void* prior_kv = nullptr;       // B m 2D, or null
  const void* prior_gate = nullptr;
  void* compressed = nullptr;   // B N D
  void* leftover_kv = nullptr;  // B (S mod m) L·D, with rests
  void* leftover_gate = nullptr;
  void* next_kv = nullptr;  // B m 2D, with rests and two lanes: the prior of a next call
  void* next_gate = nullptr;
  float* workspace = nullptr;
};
std::size_t csa_compress_workspace(const CsaCompress& args);  // bytes

struct CsaCompressBackward {
  CsaCompress of;  // its outputs and workspace are not used
  // Cotangents of the outputs; a null one is 0.
  const void *dcompressed = nullptr, *dleftover_kv = nullptr, *dleftover_gate = nullptr,
             *dnext_kv = nullptr, *dnext_gate = nullptr;
  float *dkv = nullptr, *dgate = nullptr;
  float *dposition_bias = nullptr, *dnorm_weight = nullptr;  // null where the tensor is
  float *dprior_kv = nullptr, *dprior_gate = nullptr;
  float* workspace = nullptr;
};
std::size_t csa_compress_backward_workspace(const CsaCompressBackward& args);  // bytes

PLUMBLINE_LAUNCHER(csa_compress, CsaCompress)
PLUMBLINE_LAUNCHER(csa_compress_backward, CsaCompressBackward)

}  // namespace plumbline::device
