// tools/kernels/trial.hpp: a kernel on a machine, judged as any other candidate is.
#pragma once
#include <map>

#include "tools/kernels/kernel.hpp"
#include "verdict/check.hpp"

namespace plumbline {

struct Trial {
  std::string crime;  // of the machine: a race, an index out of bounds, an output unwritten
  std::vector<StoredTensor> results;
  CheckReport report;   // where there was no crime
  std::string missing;  // a result that the operation returns and the kernel does not

  bool passed() const;
  // Nothing outside any bound, and of some element no proof.
  bool unprovable() const;
  std::string verdict() const;  // "PASS", or what is wrong in a word
  std::string reason() const;   // in a line
  long double margin() const;   // the largest of any tensor
};

// Names and numbers of results: equal if and only if both are, to the bit.
std::string bytes_of(const std::vector<StoredTensor>& results);

// What a kernel is tried with: the fixtures of its operation's suite and its own odd shapes, each
// in BF16 and in F32, each under its own schedule and those of the kernel.
struct KernelCase {
  std::string name, family;
  Problem problem;
  bool backward = false;
  std::vector<std::string> expected;  // what the operation returns, by full names
  std::string refused;                // by the kernel: the reason
  std::string unprovable;             // why UNPROVABLE is no failure here; empty: it is one
};

// Judges as check does; results that are bit for bit those of an earlier trial under the same
// contract are not judged again.
class Trials {
 public:
  Trials(const Kernel& kernel, const KernelCase& one) : kernel_(kernel), case_(one) {}
  Trial run(const KernelMachine& machine);

 private:
  const Kernel& kernel_;
  const KernelCase& case_;
  std::map<std::string, CheckReport> judged_;  // by contract and bytes
};

// The cases of a kernel. suite: the path of a suite file, or empty. Errors name the case.
std::vector<KernelCase> cases_of(const Kernel& kernel, const std::string& suite);

// The n-th machine of many: orders, schedules and arithmetics in turn.
device::host::Options machine_number(std::uint64_t n);
std::string describe(const KernelMachine& machine);

}  // namespace plumbline
