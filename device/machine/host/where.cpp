#include "device/machine/host/where.hpp"

#include <cstring>

namespace plumbline::device::host {

bool operator==(Where a, Where b) {
  if (a.bits_ == b.bits_) return true;
  return a.line() == b.line() && a.file() && b.file() && !std::strcmp(a.file(), b.file());
}

std::string text(Where at) {
  if (!at.file()) return "nowhere";
  const std::string file = at.file();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(at.line());
}

}  // namespace plumbline::device::host
