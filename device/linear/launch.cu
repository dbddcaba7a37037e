// The same text by nvcc.
#include "device/linear/launch.cpp"
