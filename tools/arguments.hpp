// tools/arguments.hpp: arguments that several commands read alike.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "verdict/contract.hpp"

namespace plumbline {

// --threads: 0 stands for every core. Error outside 0 ... 1024.
int threads_of(int asked);
// a,b,c in parts; none of an empty text. `option` is how an error names it.
std::vector<std::string> comma_list(const std::string& list, const std::string& option);

// --contract: a preset by its name, or @ and the file with its JSON.
KernelContract contract_of(const std::string& text);

// Files to write, by option; an empty name is none. Error when two are one file, or one of them is read.
void check_report_paths(const std::vector<std::pair<std::string, std::string>>& written,
                        const std::vector<std::string>& read);
// Nothing without a name. Unlike results it may go to a device or a pipe.
void write_report(const std::string& path, const std::string& text);

}  // namespace plumbline
