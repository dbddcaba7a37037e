// device/machine/host/where.hpp: a line of a kernel's text, and what went wrong there.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace plumbline::device::host {

// A source line in eight bytes, so that shadow memory can afford three per cell: the file's name
// is a pointer of at most 48 bits, the line takes the rest. Every operation has a hidden last
// parameter of this type. (std::source_location is missing in clang 14; the builtins are in both
// compilers.)
class Where {
 public:
  Where() = default;
  static Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Where(reinterpret_cast<std::uintptr_t>(file) | std::uint64_t(std::uint16_t(line)) << 48);
  }
  const char* file() const { return reinterpret_cast<const char*>(bits_ << 16 >> 16); }
  int line() const { return static_cast<int>(bits_ >> 48); }
  // The same text may be compiled into several files, each with its own copy of the name.
  friend bool operator==(Where a, Where b);

 private:
  explicit Where(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

std::string text(Where);  // file.cuh:12

// What a GPU would let pass. The text starts with its kind in capitals, then says what happened to
// which memory, on which line, and who did it.
struct Crime : std::runtime_error {
  using runtime_error::runtime_error;
};

// A synchronisation as it stands in the text; a run may leave it out on purpose.
struct Site {
  std::string kind;
  Where at;
  int passages = 0;  // how often one thread of one block came by, at most
  friend bool operator==(const Site& a, const Site& b) { return a.at == b.at && a.kind == b.kind; }
};

}  // namespace plumbline::device::host
