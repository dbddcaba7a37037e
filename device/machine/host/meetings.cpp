// Threads that wait for one another, and the option that lets one of those places go missing.
#include <cstring>

#include "device/machine/host/machine.hpp"

namespace plumbline::device::host {

bool Machine::left_out(const char* kind, Where at) {
  if (options.without && options.without->at == at && options.without->kind == kind)
    return options.passage < 0 || me().left_out++ == options.passage;
  std::size_t k = 0;
  while (k < sites.size() && !(sites[k].at == at && sites[k].kind == kind)) ++k;
  if (k == sites.size()) sites.push_back({kind, at});
  std::vector<int>& passages = me().passages;
  if (passages.size() <= k) passages.resize(k + 1);
  sites[k].passages = std::max(sites[k].passages, ++passages[k]);
  return false;
}

void Machine::sync(int id, int count, bool waits, Where at) {
  if (id < 0 || id > 15)
    throw Crime("BARRIER " + std::to_string(id) + " at " + text(at) + ": there are 16");
  NamedBarrier& b = barriers_[static_cast<std::size_t>(id)];
  Thread& self = me();
  const auto who = [&] { return "thread " + std::to_string(self.clock.id) + " at " + text(at); };
  const std::string name = "BARRIER " + std::to_string(id);
  if (count <= 0 || count % 32)
    throw Crime(name + " COUNT: " + who() + " names " + std::to_string(count) +
                " threads, which are not whole warps");
  if (b.arrived && b.expected != count)
    throw Crime(name + " COUNT: " + who() + " names " + std::to_string(count) + " threads, " +
                std::to_string(b.expected) + " at " + text(b.first));
  if (id == 0 && b.arrived && b.first != at)
    throw Crime("DIVERGENT barrier: " + who() + ", others at " + text(b.first));
  for (const Clock& clock : b.clocks)
    if (clock.id == self.clock.id) throw Crime(name + " TWICE: " + who() + " has already arrived");
  b.expected = count, b.first = at;
  b.clocks.push_back(self.clock);
  if (waits)
    b.waiting.push_back(&self);
  else
    ++self.clock.own;
  if (++b.arrived < count) {
    if (waits) wait("barrier", static_cast<std::uint32_t>(id), at);
    return;
  }
  // The hardware counts warps: all lanes of a warp come, or none.
  std::array<int, 32> lanes{};
  for (const Clock& clock : b.clocks) ++lanes[clock.id / 32];
  for (std::size_t w = 0; w < lanes.size(); ++w)
    if (lanes[w] % 32)
      throw Crime(name + " PARTIAL WARP: only " + std::to_string(lanes[w]) + " lanes of warp " +
                  std::to_string(w) + " came to " + text(at));
  const Lesson lesson = options.shadow ? join(b.clocks) : Lesson{nothing_, nothing_};
  // Later than any of those who met, and the same for all: lanes of one clock are stored together.
  std::uint32_t next = 0;
  for (const Clock& clock : b.clocks) next = std::max(next, clock.own + 1);
  for (Thread* t : b.waiting) {
    t->clock.seen = lesson.seen, t->clock.fenced = lesson.fenced, t->clock.own = next;
    if (t != &self) wake(t);
  }
  b.arrived = 0, b.clocks.clear(), b.waiting.clear();
}

void** Machine::meet(Meeting& meeting, int size, int index, void* part, const char* what,
                     Where at) {
  if (meeting.arrived && (std::strcmp(meeting.what, what) != 0 || meeting.at != at))
    throw Crime("DIVERGENT warp: thread " + std::to_string(me_id()) + " does " + what + " at " +
                text(at) + ", others " + meeting.what + " at " + text(meeting.at));
  meeting.what = what, meeting.at = at;
  meeting.part[static_cast<std::size_t>(index)] = part;
  if (++meeting.arrived < size) {
    meeting.waiting.push_back(&me());
    wait(what, me_id() / 32, at);
    return nullptr;
  }
  return meeting.part.data();
}

void Machine::dismiss(Meeting& meeting) {
  meeting.arrived = 0;
  for (Thread* t : meeting.waiting) wake(t);
  meeting.waiting.clear();
}

void Machine::sync_warp(Where at) {
  Clock& mine = me().clock;
  void** const parts = meet(warp(), 32, static_cast<int>(mine.id % 32), &mine, "sync_warp", at);
  if (!parts) return;
  if (options.shadow) {
    std::vector<Clock> clocks;
    for (int i = 0; i < 32; ++i) clocks.push_back(*static_cast<Clock*>(parts[i]));
    const Lesson lesson = join(clocks);
    std::uint32_t next = 0;
    for (const Clock& clock : clocks) next = std::max(next, clock.own + 1);
    for (int i = 0; i < 32; ++i) {
      Clock& clock = *static_cast<Clock*>(parts[i]);
      clock.seen = lesson.seen, clock.fenced = lesson.fenced, clock.own = next;
    }
  }
  dismiss(warp());
}

}  // namespace plumbline::device::host
