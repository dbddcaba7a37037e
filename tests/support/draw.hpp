// tests/support/draw.hpp
//
// Random choices for rapidcheck properties. Sizes, options and switches are drawn one by one, so that rapidcheck can
// shrink them; the contents of tensors come from a Stream keyed by a drawn seed and the tensor's name, so that a
// shrunk shape keeps simple contents.
#pragma once
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <rapidcheck/detail/TestListenerAdapter.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/distribution.hpp"
#include "tests/support/stream.hpp"

namespace plumbline::support {

// An integer in [low, high], whatever rapidcheck's size; shrinks towards low.
inline std::int64_t pick(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(low, high + 1));
}
inline bool chance(int percent) { return pick(0, 99) >= 100 - percent; }  // shrinks towards false
template <class U> U one_of(const std::vector<U>& list) {
  return list[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(list.size()) - 1))];
}

// Runs a property as part of a GoogleTest test: body draws, checks with RC_ASSERT and counts its classes. The seed is
// that of RC_PARAMS (tests/support/property_main.hpp fixes it) mixed with the test's name, so that two properties do
// not see the same cases; a failure prints how to reproduce it.
template <class Body>
void property(const std::string& part, Body body) {  // one of several in a test
  namespace detail = rc::detail;
  const ::testing::TestInfo* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = info->name() + (part.empty() ? "" : " " + part);
  detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + name;
  metadata.description = name;
  detail::TestParams parameters = detail::configuration().testParams;
  parameters.seed ^= Stream(0, metadata.id).next();

  Distribution distribution;
  const detail::Property cases = detail::toProperty([&] {
    distribution.next_case();
    body(distribution);
  });
  detail::TestListenerAdapter listener;
  const detail::TestResult result = detail::checkProperty(cases, metadata, parameters, listener,
                                                          detail::configuration().reproduce);
  if (result.template is<detail::SuccessResult>()) {
    distribution.finish(name);
    return;
  }
  std::ostringstream text;
  detail::printResultMessage(result, text);
  FAIL() << text.str() << "\nseed " << parameters.seed << "; to see it again: RC_PARAMS=\""
         << std::getenv("RC_PARAMS") << "\" --gtest_filter=" << info->test_suite_name() << "."
         << info->name() << std::endl;
}
template <class Body> void property(Body body) { property("", body); }

}  // namespace plumbline::support
