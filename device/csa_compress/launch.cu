// The same text by nvcc.
#include "device/csa_compress/launch.cpp"
