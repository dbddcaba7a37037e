// device/machine/gpu/gpu.hpp
//
// The GPU side. Each operation is one intrinsic or one line of PTX; whatever is longer is in
// machine.hpp, where both sides share it.
#pragma once
#include "device/machine/gpu/operations.hpp"

#include "device/machine/gpu/tensor.hpp"
#if PLUMBLINE_SM90
#include "device/machine/gpu/asynchronous.hpp"

#include "device/machine/gpu/wgmma.hpp"
#endif
#include "device/machine/gpu/launch.hpp"
