// tools/kernels/kernel.hpp
//
// The table of kernels: one text each, in device/<op>, and here what the registry cannot know of it.
// From a problem of the operation to launches on a machine, the contract that the kernel obeys, and
// what it does not take, with the reason. Nothing here computes.
#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reference/registry/operation.hpp"
#include "tools/kernels/bench.hpp"
#include "verdict/contract.hpp"

namespace plumbline {

struct Kernel {
  std::string op, name;  // "naive" or "fast"
  // The same bits whatever the order of threads, warps and blocks: no sum is left to atomics.
  bool deterministic = true;
  // Why the kernel does not take this problem; empty: it does.
  std::function<std::string(const Problem&)> refuses;
  // As JSON of verdict/contract.hpp; the accumulator follows from the machine, see contract_on.
  std::function<Json(const Problem&)> contract;
  // Puts the problem on the bench, launches, names the results. backward: gradients too.
  std::function<void(Bench&, const Problem&, bool backward)> run;
  // Schedules tried beside the one of a fixture, which the kernel honours as well.
  std::vector<Json> schedules;
  // Cases, by the id of the fixture, in which bounds prove nothing of some element, and why: an
  // execution the contract allows may stand on either side of a kink. Of any other, that is a failure.
  std::map<std::string, std::string> unprovable;
  // Odd shapes tried beside the suite's fixtures: entries of a suite, as JSON.
  std::vector<Json> odd;
};

std::span<const Kernel> kernels();  // in the order of operations, naive before fast
// Those of one operation, or all where it has no name. Error for an operation without a kernel.
std::vector<const Kernel*> kernels_of(const std::string& op);

// The contract of a kernel whose products a machine adds up in this way. Sums outside the tensor
// core are in f32 to nearest, which every accumulator here allows.
KernelContract contract_on(const Json& contract, device::host::Products products);

// The tables of each file, one kernel or a few each.
void add_csa_attention_kernels(std::vector<Kernel>& table);
void add_csa_compress_kernels(std::vector<Kernel>& table);
void add_indexer_scores_kernels(std::vector<Kernel>& table);
void add_linear_kernels(std::vector<Kernel>& table);
void add_mla_attention_kernels(std::vector<Kernel>& table);
void add_mla_projection_kernels(std::vector<Kernel>& table);
void add_norm_kernels(std::vector<Kernel>& table);
void add_rope_kernels(std::vector<Kernel>& table);
void add_topk_kernels(std::vector<Kernel>& table);

// ---- reasons that several kernels have -----------------------------------------------------------

// Every real tensor of one dtype, BF16 or F32, without remainders and scales; nothing given.
std::string refuses_dtypes(const Problem& problem);
device::Type type_of(const Problem& problem);  // of a problem that is not refused

// ---- what their tables are written with ------------------------------------------------------------

const StoredTensor& or_none(const Tensors& tensors, std::string_view name);
// Room for the gradient of an input; null where the input is absent.
float* gradient_of(Bench& bench, const Problem& problem, const char* name);
std::vector<Json> entries(std::initializer_list<const char*> texts);

}  // namespace plumbline
