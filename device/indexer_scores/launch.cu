// The same text by nvcc.
#include "device/indexer_scores/launch.cpp"
