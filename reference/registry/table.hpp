// reference/registry/table.hpp: every operation, one line each. The tables are cut by family, so that no file takes
// long to compile.
#pragma once
#include <vector>

namespace plumbline {

class Operation;
std::vector<const Operation*> table_of_csa();
std::vector<const Operation*> table_of_losses();
std::vector<const Operation*> table_of_mla();

}  // namespace plumbline
