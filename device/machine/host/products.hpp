// device/machine/host/products.hpp: the arithmetic of a tensor core, in three models.
#pragma once
#include "device/machine/host/machine.hpp"

namespace plumbline::device::host {

// d (rows x columns) += a (rows x 16) · b (16 x columns), all row-major and without gaps; whole
// groups of eight columns.
void accumulate(Products model, float* d, const float* a, const float* b, int rows, int columns);

}  // namespace plumbline::device::host
