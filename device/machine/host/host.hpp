// device/machine/host/host.hpp: the host side.
#pragma once
#include "device/machine/host/asynchronous.hpp"
#include "device/machine/host/launch.hpp"
