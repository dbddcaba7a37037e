// The same text by nvcc.
#include "device/csa_attention/launch.cpp"
