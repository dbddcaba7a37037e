#include "bindings/c/boundary.hpp"

#include <cstdlib>
#include <iterator>
#include <new>
#include <utility>

#ifndef PLUMBLINE_VERSION
#define PLUMBLINE_VERSION "unversioned"
#endif

namespace plumbline::bindings {
namespace {

struct LastError {
  std::string text, where, found, expected;
};
LastError& last_error() {
  thread_local LastError error;
  return error;
}

constexpr Dtype dtypes[] = {Dtype::f64, Dtype::f32, Dtype::f16,     Dtype::bf16,    Dtype::i64,
                            Dtype::i32, Dtype::u8,  Dtype::boolean, Dtype::f8_e4m3, Dtype::f8_e5m2};

plumbline_status remember(plumbline_status status, const Error& error) {
  last_error() = {error.what(), error.where(), error.found(), error.expected()};
  return status;
}

StoredTensor tensor_of(const plumbline_tensor* foreign, std::size_t number) {
  const std::string where = "tensors[" + std::to_string(number) + "]";
  const plumbline_tensor tensor = read(foreign, where.c_str());
  const std::string name = text_at(tensor.name, (where + ".name").c_str());
  constexpr std::int32_t most = 64;
  if (tensor.rank < 0 || tensor.rank > most)
    throw Error(name, "rank " + std::to_string(tensor.rank), "0 to " + std::to_string(most));
  Shape shape, stride;
  if (tensor.rank > 0) {
    const std::int64_t* const sizes = &at(tensor.shape, (name + " shape").c_str());
    shape.assign(sizes, sizes + tensor.rank);
    if (tensor.strides != nullptr) stride.assign(tensor.strides, tensor.strides + tensor.rank);
  }
  const bool strided = tensor.rank > 0 && tensor.strides != nullptr;
  return tensor_at(name, tensor.data, dtype_of(tensor.dtype, name), std::move(shape),
                   strided ? &stride : nullptr);
}

}  // namespace

plumbline_status status_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return remember(PLUMBLINE_BAD_INPUT, error);
    } catch (const std::bad_alloc&) {
      return remember(PLUMBLINE_NO_MEMORY, Error("memory", "not enough", "enough for this case"));
    } catch (const std::exception& error) {
      return remember(PLUMBLINE_INTERNAL,
                      Error("plumbline itself", error.what(), "no failure here"));
    } catch (...) {
      return remember(PLUMBLINE_INTERNAL,
                      Error("plumbline itself", "an unknown exception", "no failure here"));
    }
  } catch (...) {
    return PLUMBLINE_NO_MEMORY;  // not even for the text
  }
}

char* copy_of(const std::string& text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Dtype dtype_of(plumbline_dtype code, const std::string& where) {
  if (code < 0 || code >= static_cast<plumbline_dtype>(std::size(dtypes)))
    throw Error(where, "dtype " + std::to_string(code), "one of the PLUMBLINE_ dtypes");
  return dtypes[code];
}

plumbline_dtype code_of(Dtype dtype) {
  return static_cast<plumbline_dtype>(std::find(std::begin(dtypes), std::end(dtypes), dtype) -
                                      std::begin(dtypes));
}

Call call_of(const plumbline_request* foreign) {
  const plumbline_request request = read(foreign, "request");
  Call call;
  call.op = text_at(request.op, "request.op");
  call.options = text_or_none(request.options);
  call.schedule = text_or_none(request.schedule);
  call.precision = text_or_none(request.precision);
  call.contract = text_or_none(request.contract);
  call.gradient = request.gradient != 0;
  call.threads = request.threads;
  std::string word;
  for (const char c : text_or_none(request.outputs) + ",") {
    if (c != ',') {
      word += c;
    } else if (!word.empty()) {
      call.outputs.push_back(std::exchange(word, {}));
    }
  }
  for (std::size_t i = 0; i < request.tensor_count; ++i)
    call.tensors.push_back(tensor_of((&at(request.tensors, "request.tensors"))[i], i));
  return call;
}

}  // namespace plumbline::bindings

using namespace plumbline::bindings;

extern "C" {

int32_t plumbline_abi_version(void) { return PLUMBLINE_ABI_VERSION; }
const char* plumbline_version(void) { return PLUMBLINE_VERSION; }

const char* plumbline_last_error(void) { return last_error().text.c_str(); }
const char* plumbline_last_error_where(void) { return last_error().where.c_str(); }
const char* plumbline_last_error_found(void) { return last_error().found.c_str(); }
const char* plumbline_last_error_expected(void) { return last_error().expected.c_str(); }

void plumbline_free(char* text) { std::free(text); }

}  // extern "C"
