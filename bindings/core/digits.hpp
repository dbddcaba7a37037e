// bindings/core/digits.hpp
#pragma once
#include <string>
#include <vector>

#include "reference/registry/operation.hpp"

namespace plumbline::bindings {

// Every digit of a value that was evaluated in mp100, in decimal; nothing for any other.
std::vector<std::string> digits_of(const Value& value);

}  // namespace plumbline::bindings
