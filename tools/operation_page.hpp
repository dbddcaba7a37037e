// tools/operation_page.hpp: an operation as a page of documentation, as text and as markdown.
#pragma once
#include <string>

#include "reference/registry/operation.hpp"

namespace plumbline {

std::string page_text(const Operation& operation);
std::string page_markdown(const Operation& operation);

}  // namespace plumbline
