// reference/registry/description.hpp
//
// An operation in words: everything the registry knows of it, as JSON. `plumbline ops --json`, C and Python say the
// same because they print this.
#pragma once
#include <string_view>

#include "reference/registry/operation.hpp"

namespace plumbline {

std::string_view name_of(Kind kind);  // real, integer, boolean

// name, summary, formula, inputs, given, cotangents, outputs, options, presets, schedule.
Json description_of(const Operation& operation);

}  // namespace plumbline
