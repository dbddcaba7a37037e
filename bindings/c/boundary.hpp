// bindings/c/boundary.hpp: what stands between the C functions and the library. Inside bindings/c only.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "bindings/core/call.hpp"
#include "include/plumbline/plumbline.h"
#include "reference/error.hpp"

namespace plumbline::bindings {

// Remembers the exception that is being handled for plumbline_last_error, and says which status it is.
plumbline_status status_of_exception() noexcept;

template <class F> plumbline_status guarded(F f) noexcept {
  try {
    f();
    return PLUMBLINE_OK;
  } catch (...) {
    return status_of_exception();
  }
}

// A pointer that must not be NULL; `where` is how the error names it.
template <class T> T& at(T* pointer, const char* where) {
  if (pointer == nullptr) throw Error(where, "NULL", "an address");
  return *pointer;
}
inline std::string text_at(const char* text, const char* where) { return &at(text, where); }
inline std::string text_or_none(const char* text) { return text == nullptr ? "" : text; }

// A struct of a caller whose header may be older or newer than this library: what it does not have is 0, what this
// library does not know must be 0.
template <class T> T read(const T* foreign, const char* where) {
  const std::size_t size = at(foreign, where).struct_size;
  if (size < sizeof(std::size_t))
    throw Error(std::string(where) + ".struct_size", std::to_string(size), "sizeof the struct");
  T own{};
  std::memcpy(&own, foreign, std::min(size, sizeof(T)));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(foreign);
  for (std::size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0)
      throw Error(where, "fields that this library does not know",
                  "none: see plumbline_abi_version");
  }
  return own;
}
// Into a struct of a caller: what it does not have is left out, struct_size stays.
template <class T> void write(T* foreign, T own, const char* where) {
  const std::size_t size = at(foreign, where).struct_size;
  if (size < sizeof(std::size_t))
    throw Error(std::string(where) + ".struct_size", std::to_string(size), "sizeof the struct");
  own.struct_size = size;
  std::memcpy(foreign, &own, std::min(size, sizeof(T)));
}

char* copy_of(const std::string& text);
inline std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Dtype dtype_of(plumbline_dtype code, const std::string& where);
plumbline_dtype code_of(Dtype dtype);
Call call_of(const plumbline_request* request);

}  // namespace plumbline::bindings
