#include "bindings/c/boundary.hpp"

using namespace plumbline;
using namespace plumbline::bindings;

struct plumbline_case {
  OpenCase held;
  std::string metadata = "{}";

  explicit plumbline_case(OpenCase a_case) : held(std::move(a_case)) {
    const auto text = held.metadata.find("plumbline");
    if (text != held.metadata.end()) metadata = text->second;
  }
};

namespace {

template <class F> plumbline_status made(plumbline_case** to, F f) noexcept {
  return guarded([&] {
    at(to, "case") = nullptr;
    *to = std::make_unique<plumbline_case>(f()).release();
  });
}

}  // namespace

extern "C" {

plumbline_status plumbline_generate(const char* request, int32_t threads, plumbline_case** to) {
  return made(to, [&] { return generate(text_at(request, "request"), threads); });
}

plumbline_status plumbline_case_load(const char* path, plumbline_case** loaded) {
  return made(loaded, [&] { return load(text_at(path, "path")); });
}

plumbline_status plumbline_case_save(const plumbline_case* a_case, const char* path) {
  return guarded([&] { save(text_at(path, "path"), at(a_case, "case").held); });
}

const char* plumbline_case_metadata(const plumbline_case* a_case) {
  return a_case == nullptr ? "{}" : a_case->metadata.c_str();
}

size_t plumbline_case_tensor_count(const plumbline_case* a_case) {
  return a_case == nullptr ? 0 : a_case->held.tensors.size();
}

plumbline_status plumbline_case_tensor(const plumbline_case* a_case, size_t index,
                                       plumbline_tensor* tensor) {
  return guarded([&] {
    const std::size_t count = at(a_case, "case").held.tensors.size();
    if (index >= count)
      throw Error("index", std::to_string(index), "less than " + std::to_string(count));
    const StoredTensor& from = a_case->held.tensors[index];
    plumbline_tensor to{};
    to.name = from.name.c_str();
    to.data = from.data;
    to.dtype = code_of(from.dtype);
    to.rank = static_cast<std::int32_t>(from.shape.size());
    to.shape = from.shape.data();
    to.strides = from.stride.data();
    write(tensor, to, "tensor");
  });
}

void plumbline_case_free(plumbline_case* a_case) { delete a_case; }

}  // extern "C"
