#include <algorithm>

#include "fixtures/text.hpp"
#include "reference/error.hpp"
#include "reference/registry/option_visitors.hpp"
#include "tools/kernels/kernel.hpp"

namespace plumbline {

std::span<const Kernel> kernels() {
  static const std::vector<Kernel> table = [] {
    std::vector<Kernel> list;
    add_csa_attention_kernels(list);
    add_csa_compress_kernels(list);
    add_indexer_scores_kernels(list);
    add_linear_kernels(list);
    add_mla_attention_kernels(list);
    add_mla_projection_kernels(list);
    add_norm_kernels(list);
    add_rope_kernels(list);
    add_topk_kernels(list);
    std::stable_sort(list.begin(), list.end(),
                     [](const Kernel& a, const Kernel& b) { return a.op < b.op; });
    return list;
  }();
  return table;
}

std::vector<const Kernel*> kernels_of(const std::string& op) {
  std::vector<const Kernel*> list;
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels()) {
    list.push_back(&kernel);
    if (names.empty() || names.back() != kernel.op) names.push_back(kernel.op);
  }
  if (op.empty()) return list;
  std::erase_if(list, [&](const Kernel* kernel) { return kernel->op != op; });
  if (list.empty())
    throw Error("OP", in_quotes(op), "an operation with a kernel: " + joined(names));
  return list;
}

KernelContract contract_on(const Json& contract, device::host::Products products) {
  KernelContract made = contract_from_json(contract);
  if (products == device::host::Products::truncated) {
    // Seventeen terms aligned to the largest, 24 bits of each kept, and so of the sum.
    made.accumulator.rounding = Accumulator::Rounding::truncate;
    made.accumulator.block = 16;
    made.accumulator.fraction_bits = 23;
  }
  return made;
}

std::string refuses_dtypes(const Problem& problem) {
  if (!problem.given.empty()) return "reads no given." + problem.given.begin()->first;
  std::optional<Dtype> common;
  for (const Tensors* tensors : {&problem.in, &problem.cot}) {
    for (const auto& [name, tensor] : *tensors) {
      if (!is_real(tensor.dtype)) continue;
      const std::string found = tensor.name + " is " + std::string(name_of(tensor.dtype));
      if (tensor.low || tensor.scale)
        return "reads plain numbers, and " + tensor.name + " has parts";
      if (tensor.dtype != Dtype::bf16 && tensor.dtype != Dtype::f32)
        return "reads BF16 or F32, and " + found;
      if (common && *common != tensor.dtype) return "reads one dtype, and " + found;
      common = tensor.dtype;
    }
  }
  return "";
}

const StoredTensor& or_none(const Tensors& tensors, std::string_view name) {
  static const StoredTensor none;
  const auto at = tensors.find(name);
  return at == tensors.end() ? none : at->second;
}

float* gradient_of(Bench& bench, const Problem& problem, const char* name) {
  const StoredTensor& tensor = or_none(problem.in, name);
  return tensor.given() ? bench.gradient(name, tensor.shape) : nullptr;
}

std::vector<Json> entries(std::initializer_list<const char*> texts) {
  std::vector<Json> list;
  for (const char* const text : texts) list.push_back(Json::parse(text));
  return list;
}

device::Type type_of(const Problem& problem) {
  for (const auto& [name, tensor] : problem.in) {
    if (tensor.dtype == Dtype::bf16) return device::Type::bf16;
  }
  return device::Type::f32;
}

}  // namespace plumbline
