// tests/support/property_main.hpp
//
// main() of a property suite: the same cases on every run, unless RC_PARAMS says otherwise.
//   RC_PARAMS="max_success=10000 seed=7" ./properties --gtest_filter='Name*'     another seed, more cases
//   RC_PARAMS="reproduce=..."                                                    what a failure printed
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace plumbline::support {

inline constexpr const char *fixed_seed = "seed=20260922", *cases = "max_success=150";

inline int property_main(int argc, char** argv) {
  const char* asked = std::getenv("RC_PARAMS");
  std::string parameters = asked == nullptr ? "" : asked;
  const bool chosen = parameters.find("seed=") != std::string::npos ||
                      parameters.find("reproduce=") != std::string::npos;
  if (parameters.find("max_success=") == std::string::npos)
    parameters += (parameters.empty() ? "" : " ") + std::string(cases);
  if (!chosen) parameters += (parameters.empty() ? "" : " ") + std::string(fixed_seed);
  setenv("RC_PARAMS", parameters.c_str(), 1);
  std::printf("RC_PARAMS=\"%s\"\n", parameters.c_str());
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace plumbline::support
