// The same text by nvcc.
#include "device/topk/launch.cpp"
