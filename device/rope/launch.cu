// The same text by nvcc.
#include "device/rope/launch.cpp"
