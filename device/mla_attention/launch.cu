// The same text by nvcc.
#include "device/mla_attention/launch.cpp"
