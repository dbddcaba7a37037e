// reference/registry/table.hpp: every operation, one line each (table.cpp).
#pragma once
#include <vector>

namespace plumbline {

class Operation;
std::vector<const Operation*> table_of_operations();

}  // namespace plumbline
