// device/csa_attention/naive.cuh
//
// The window, the selected blocks and the sink in one softmax: an attention with one key head whose
// values are its keys. Its text is that of all attentions, device/pieces/attention_forward.cuh and
// _backward.cuh.
//
// Floor, V4-Flash at 128K (64 heads, D = 512, 512 + 128 keys): 11.0 TFLOP forward, 13.9 ms at 790
// TFLOP/s, 4.1 ms of memory; backward 34.6 ms. Here 16 heads share a gathered row instead of 64, so
// L2 gives out 4·2·D bytes a key and row: 343 GB, some 60 ms. That is what fast.cuh is for.
#pragma once
#include "device/pieces/attention_launch.hpp"
