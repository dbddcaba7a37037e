// The same text by nvcc.
#include "device/mla_projection/launch.cpp"
