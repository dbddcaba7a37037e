// reference/error.hpp
//
// The one exception of the library: which tensor or option, what was found, what was expected.
// Its text is one line and is the same on the command line, in C++, C and Python.
#pragma once
#include <exception>
#include <string>
#include <utility>

namespace plumbline {

class Error : public std::exception {
 public:
  Error(std::string where, std::string found, std::string expected)
      : where_(std::move(where)), found_(std::move(found)), expected_(std::move(expected)) {
    text_ = where_ + ": found " + found_ + ", expected " + expected_;
  }
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& where() const noexcept { return where_; }  // tensor, option or file
  const std::string& found() const noexcept { return found_; }
  const std::string& expected() const noexcept { return expected_; }

 private:
  std::string where_, found_, expected_, text_;
};

}  // namespace plumbline
