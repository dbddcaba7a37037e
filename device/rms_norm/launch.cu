// The same text by nvcc.
#include "device/rms_norm/launch.cpp"
