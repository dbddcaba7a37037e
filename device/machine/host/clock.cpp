#include "device/machine/host/clock.hpp"

namespace plumbline::device::host {
namespace {

void raise(std::uint32_t& entry, std::uint32_t to) { entry = std::max(entry, to); }

Known join(const std::vector<Clock>& arrivals, Known Clock::*seen, std::uint32_t Clock::*own,
           std::uint32_t Clock::*copies) {
  auto* all = new Vector((arrivals.front().*seen)->at);
  const Known out(all);
  const Vector* last = (arrivals.front().*seen).get();
  for (const Clock& clock : arrivals) {
    const Vector* other = (clock.*seen).get();
    if (other == last) continue;  // usually everybody comes from the same barrier
    last = other;
    for (std::size_t i = 0; i < all->at.size(); ++i) raise(all->at[i], other->at[i]);
  }
  for (const Clock& clock : arrivals) {
    raise(all->at[clock.id], clock.*own);
    raise(all->at[clock.threads + clock.id], clock.*copies);
  }
  return out;
}

}  // namespace

void intrusive_ptr_release(const Vector* v) {
  if (--v->uses == 0) delete v;
}

Lesson join(const std::vector<Clock>& arrivals) {
  return {join(arrivals, &Clock::seen, &Clock::own, &Clock::copies),
          join(arrivals, &Clock::fenced, &Clock::own_fenced, &Clock::copies_fenced)};
}

Known Merger::operator()(const Known& a, const Known& b) {
  if (a == b) return a;
  if (a != a_ || b != b_) {
    auto* all = new Vector(a->at);
    a_ = a, b_ = b, out_ = all;
    for (std::size_t i = 0; i < all->at.size(); ++i) raise(all->at[i], b->at[i]);
  }
  return out_;
}

}  // namespace plumbline::device::host
