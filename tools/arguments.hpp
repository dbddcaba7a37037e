// tools/arguments.hpp: arguments that several commands read alike.
#pragma once
#include <string>
#include <vector>

#include "verdict/contract.hpp"

namespace plumbline {

// --threads: 0 stands for every core. Error outside 0 ... 1024.
int threads_of(int asked);
// a,b,c in parts; none of an empty text. `option` is how an error names it.
std::vector<std::string> comma_list(const std::string& list, const std::string& option);

// --contract: a preset by its name, or @ and the file with its JSON.
KernelContract contract_of(const std::string& text);

}  // namespace plumbline
