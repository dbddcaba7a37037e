// properties/problem_generators.hpp
//
// Random problems by operation, for properties that hold of every operation. An operation's file says once
//     const bool listed = add_generator("name", [] { ...draw...; return GeneratedProblem{problem, floor}; });
// at namespace scope, and schedule_property.cpp covers it.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "reference/registry/operation.hpp"

namespace plumbline::properties {

struct GeneratedProblem {
  Problem problem;                               // without a schedule
  std::int64_t heads = 1, keys = 1, tokens = 1;  // what chunks are drawn from
  // From which size on digits are counted, tensor by tensor: 0 = the row's largest number.
  std::function<double(const std::string& name)> floor = [](const std::string&) { return 1.0; };
};
using ProblemGenerator = std::function<GeneratedProblem()>;

inline std::map<std::string, ProblemGenerator>& problem_generators() {
  static std::map<std::string, ProblemGenerator> generators;
  return generators;
}
inline bool add_generator(const std::string& operation, ProblemGenerator generator) {
  problem_generators().insert_or_assign(operation, std::move(generator));
  return true;
}

}  // namespace plumbline::properties
