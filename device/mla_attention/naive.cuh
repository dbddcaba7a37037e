// device/mla_attention/naive.cuh
//
// Attention over keys of several key heads, by the text of all attentions. A block has sixteen heads of
// one key head: with fewer heads to a key head (MHA: one) most rows of its strips are zeros, and a fast
// kernel would put query rows there instead.
//
// Floor, V3.2 sparse prefill at 128K (absorbed: 128 heads, D = 576, Dv = 512, 2048 keys): 74.2 TFLOP
// forward, 93.9 ms at 790 TFLOP/s, 37.7 ms of memory; backward 238 ms.
#pragma once
#include "device/pieces/attention_launch.hpp"
