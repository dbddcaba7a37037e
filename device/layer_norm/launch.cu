// The same text by nvcc.
#include "device/layer_norm/launch.cpp"
