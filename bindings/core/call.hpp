// bindings/core/call.hpp
//
// What a caller in another language asks, as text and tensors in its own memory, and the library's answer. C and
// Python are two ways of writing this down; neither holds a rule of its own.
// Guarantees: tensors are read where they lie, with any strides; only check copies those that are not in C order.
// Errors are the library's, with tensors by their full names ("in.query").
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/registry/operation.hpp"
#include "verdict/check.hpp"

namespace plumbline::bindings {

struct Call {
  std::string op;
  std::string options, schedule;      // JSON objects; empty text is {}
  std::string precision, contract;    // f192; a preset's name or a JSON object, none for empty text
  std::vector<std::string> outputs;   // on request
  std::vector<StoredTensor> tensors;  // in.*, given.*, cot.*, and what check is to judge
  bool gradient = false;
  int threads = 1;  // 0: one for each core
};

Result evaluate(const Call& call);  // with a contract, bounds beside the values
// The evaluation that check judges by: values, bounds and gauges of the contract's own arithmetic.
Result bound(const Call& call);
CheckReport check(const Call& call, const CheckSettings& settings = {});

// A contract in full, or the list of presets for an empty text.
Json contract_of(std::string_view text);
Json operation_list();                                        // name and summary
Json resolve(std::string_view op, std::string_view options);  // after preset and defaults
Json family_list();                                           // of generate: name and doc

// Somebody's array as a tensor. No strides: C order. Error for what cannot be an array.
StoredTensor tensor_at(std::string name, const void* data, Dtype dtype, Shape shape,
                       const Shape* stride);

// A case that is not about to be evaluated: what a file holds, or what generate made.
struct OpenCase {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};
OpenCase load(const std::string& path);
OpenCase generate(std::string_view request, int threads);  // JSON, the keys of a suite's fixture
void save(const std::string& path, const OpenCase& a_case);

}  // namespace plumbline::bindings
