// tools/operation_page.hpp: an operation as a page of documentation, as markdown and as JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "reference/registry/operation.hpp"

namespace plumbline {

std::string page_text(const Operation& operation);
std::string page_markdown(const Operation& operation);
nlohmann::json page_json(const Operation& operation);

}  // namespace plumbline
