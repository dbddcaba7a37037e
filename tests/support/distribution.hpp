// tests/support/distribution.hpp
//
// What the random cases of a property were like. Classes counted with `needs` are the ones the property is about:
// each prints its share at the end, and the test fails when one stays under 10 % of the cases.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

namespace plumbline::support {

class Distribution {
 public:
  static constexpr double least_share = 0.10;

  void next_case() { ++cases_; }
  void needs(const std::string& name, bool seen) { count(name, seen, true); }
  void notes(const std::string& name, bool seen) { count(name, seen, false); }
  std::int64_t cases() const { return cases_; }

  // Prints the shares; a failure for each rare class of those that are needed.
  void finish(const std::string& property) const {
    std::printf("  %s, %lld cases:", property.c_str(), static_cast<long long>(cases_));
    for (const auto& [name, entry] : classes_)
      std::printf(" %s %.0f %%%s", name.c_str(), 100 * share(entry), comma(name));
    std::printf("\n");
    for (const auto& [name, entry] : classes_) {
      if (entry.needed && share(entry) < least_share) {
        ADD_FAILURE() << property << ": only " << entry.seen << " of " << cases_
                      << " cases are of the class '" << name << "', at least 10 % are expected";
      }
    }
  }

 private:
  struct Entry {
    std::int64_t seen = 0;
    bool needed = false;
  };
  void count(const std::string& name, bool seen, bool needed) {
    Entry& entry = classes_[name];
    entry.seen += seen ? 1 : 0;
    entry.needed = needed;
  }
  double share(const Entry& entry) const {
    return cases_ == 0 ? 0 : static_cast<double>(entry.seen) / static_cast<double>(cases_);
  }
  const char* comma(const std::string& name) const {
    return name == classes_.rbegin()->first ? "" : ",";
  }

  std::int64_t cases_ = 0;
  std::map<std::string, Entry> classes_;
};

}  // namespace plumbline::support
