// tests/fuzz/fuzzing.hpp: what the fuzz targets share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "reference/error.hpp"

namespace plumbline::fuzz {

inline std::vector<std::byte> bytes_of(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  return bytes;
}

// A promise of the library that did not hold: the fuzzer keeps the input.
[[noreturn]] inline void broken(const char* promise, const std::string& detail) {
  std::fprintf(stderr, "broken promise: %s\n  %s\n", promise, detail.c_str());
  std::abort();
}

// Runs f. An Error is an answer and must have all its parts; anything else that is thrown is a find.
template <class F> bool answers(F&& f) {
  try {
    f();
    return true;
  } catch (const Error& error) {
    if (error.where().empty() || error.expected().empty())
      broken("an Error says where and what was expected", error.what());
    return false;
  } catch (const std::exception& error) {
    broken("what is wrong with the input is an Error", error.what());
  }
}

}  // namespace plumbline::fuzz
