// tests/generator_testing.hpp: generated cases and their tensors as numbers, for the tests of the generator.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "fixtures/generate.hpp"
#include "fixtures/strict_json.hpp"
#include "reference/tensor/tensor.hpp"

namespace plumbline {

inline GenerateRequest request(const std::string& text) {
  return generate_request(parse_json(text, "test"), "test");
}

inline std::vector<double> numbers(const GeneratedTensor& tensor) {
  StoredTensor flat = stored(tensor);
  flat.shape = {count_of(tensor.shape)};
  flat.stride = {1};
  std::vector<double> list;
  for (std::int64_t i = 0; i < flat.shape[0]; ++i) {
    const std::int64_t index[] = {i};
    list.push_back(is_real(flat.dtype)      ? Fetch<double>::element(flat, index)
                   : is_integer(flat.dtype) ? static_cast<double>(integer_at(flat, Index(index)))
                                            : static_cast<double>(boolean_at(flat, Index(index))));
  }
  return list;
}

inline const GeneratedTensor* find(const GeneratedCase& made, const std::string& name) {
  const auto found = std::find_if(made.tensors.begin(), made.tensors.end(),
                                  [&](const auto& t) { return t.name == name; });
  return found == made.tensors.end() ? nullptr : &*found;
}

}  // namespace plumbline
