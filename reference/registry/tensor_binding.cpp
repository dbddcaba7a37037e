#include "reference/registry/tensor_binding.hpp"

#include <algorithm>
#include <iterator>

#include "reference/registry/option_visitors.hpp"

namespace plumbline {
namespace {

constexpr std::string_view prefixes[] = {"in.", "given.", "cot."};

constexpr std::string_view mask_inputs[] = {"row_index", "segment_ids", "positions", "cu_seqlens",
                                            "valid",     "mask",        "row_mask"};

const Tensors& of(const Problem& problem, From from) {
  return from == From::in ? problem.in : from == From::given ? problem.given : problem.cot;
}

}  // namespace

void TensorBinder::check_kind(const StoredTensor& tensor, std::string_view name, Kind kind) {
  const bool index = name == "indices" ||
                     name.ends_with("_indices");  // the only integers that may be 64 bits wide
  const bool right = kind == Kind::real ? is_real(tensor.dtype)
                     : kind == Kind::boolean
                         ? tensor.dtype == Dtype::boolean
                         : tensor.dtype == Dtype::i32 || (index && tensor.dtype == Dtype::i64);
  if (right) return;
  throw Error(tensor.name, "dtype " + std::string(name_of(tensor.dtype)),
              kind == Kind::real      ? "real numbers"
              : kind == Kind::boolean ? "BOOL"
              : index                 ? "I32 or I64"
                                      : "I32");
}

void TensorBinder::bind(From from, std::string_view name, StoredTensor& tensor, Kind kind) {
  taken_[static_cast<std::size_t>(from)].emplace_back(name);
  const Tensors& tensors = of(problem_, from);
  const auto found = tensors.find(name);
  if (found == tensors.end()) return;
  check_kind(found->second, name, kind);
  tensor = found->second;
  tensor.nonfinite = nonfinite_;
}

void TensorBinder::finish(From from, const std::vector<std::string>& also) const {
  std::vector<std::string> known = taken_[static_cast<std::size_t>(from)];
  known.insert(known.end(), also.begin(), also.end());
  for (const auto& [name, tensor] : of(problem_, from)) {
    if (from == From::in &&
        std::find(std::begin(mask_inputs), std::end(mask_inputs), name) != std::end(mask_inputs)) {
      continue;  // a mask input that the operation has no use for
    }
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error(std::string(prefixes[static_cast<std::size_t>(from)]) + name,
                "a tensor the operation does not take", "one of " + joined(known));
  }
}

}  // namespace plumbline
