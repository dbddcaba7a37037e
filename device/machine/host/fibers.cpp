// Threads as fibers: a fiber runs until it has to wait, then a random ready one goes on.
#include <boost/context/protected_fixedsize_stack.hpp>

#include "device/machine/host/machine.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define PLUMBLINE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define PLUMBLINE_ASAN 1
#endif
#endif

namespace plumbline::device::host {
namespace {

namespace context = boost::context;

constexpr std::size_t stack_bytes = 256 * 1024;

#ifdef PLUMBLINE_ASAN
void leaving(Thread* from, const Thread* to) {
  __sanitizer_start_switch_fiber(&from->sanitizer_stack, to->stack_bottom, to->stack_size);
}
void entered(Thread* now, Thread* from) {
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(now->sanitizer_stack, &bottom, &size);
  if (from && !from->stack_bottom) from->stack_bottom = bottom, from->stack_size = size;
}
// For good: the fiber's stack is not needed again.
void leaving(const Thread* to) {
  __sanitizer_start_switch_fiber(nullptr, to->stack_bottom, to->stack_size);
}
void clean(const context::stack_context& stack) {
  __asan_unpoison_memory_region(static_cast<char*>(stack.sp) - stack.size, stack.size);
}
#else
void leaving(Thread*, const Thread*) {}
void leaving(const Thread*) {}
void clean(const context::stack_context&) {}
void entered(Thread*, Thread*) {}
#endif

// Stacks end in a guard page, which makes them dear; the next machine of this OS thread takes them.
struct Stacks {
  ~Stacks() {
    for (context::stack_context& stack : idle) allocator.deallocate(stack);
  }
  context::protected_fixedsize_stack allocator{stack_bytes};
  std::vector<context::stack_context> idle;
};
thread_local Stacks stacks;

struct Stack {
  context::stack_context allocate() const {
    context::stack_context stack;
    if (stacks.idle.empty()) {
      stack = stacks.allocator.allocate();
    } else {
      stack = stacks.idle.back();
      stacks.idle.pop_back();
      clean(stack);
    }
    thread->stack_bottom = static_cast<char*>(stack.sp) - stack.size;  // for AddressSanitizer
    thread->stack_size = stack.size;
    return stack;
  }
  void deallocate(context::stack_context& stack) const noexcept { stacks.idle.push_back(stack); }

  Thread* thread;
};

}  // namespace

std::uint64_t Machine::random() {  // SplitMix64
  std::uint64_t x = random_state_ += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
std::size_t Machine::random(std::size_t below) { return (random() >> 32) * below >> 32; }

void Machine::start_fibers() {
  while (all_.size() < static_cast<std::size_t>(threads)) {
    all_.push_back(std::make_unique<Thread>());
    Thread* const t = all_.back().get();
    t->fiber = context::fiber(std::allocator_arg, Stack{t}, [this, t](auto&& from) {
      entered(t, previous_);
      previous_->fiber = std::move(from);
      while (!closing_) run_fiber(*t);
      leaving(&main_);
      return std::move(main_.fiber);
    });
  }
  main_.clock = Clock{};
  current_ = this;
  me_ = &main_;
}

// Between launches every fiber stands at the end of run_fiber; now it may return.
Machine::~Machine() {
  closing_ = true;
  me_ = previous_ = &main_;
  for (auto& thread : all_) {
    leaving(&main_, thread.get());
    std::move(thread->fiber).resume();
    entered(&main_, nullptr);
  }
}

void Machine::run_fiber(Thread& thread) {
  try {
    if (!giving_up_) body_();
  } catch (const Unwind&) {
  } catch (const std::exception& e) {
    give_up(e.what());
  }
  thread.state = Thread::done;
  --unfinished_;
  run_somebody();
}

void Machine::switch_to(Thread* to) {
  Thread* const from = me_;
  if (to == from) return;
  ++switches;
  previous_ = from;
  me_ = to;
  leaving(from, to);
  auto back = std::move(to->fiber).resume();
  entered(from, previous_);
  previous_->fiber = std::move(back);
}

void Machine::run_somebody() {
  for (;;) {
    if (!ready_.empty()) {
      std::swap(ready_[random(ready_.size())], ready_.back());
      Thread* const next = ready_.back();
      ready_.pop_back();
      return switch_to(next);
    }
    if (unfinished_ == 0) return switch_to(&main_);
    if (landings_.empty()) {
      give_up(deadlock());
      continue;
    }
    try {
      deliver(random(landings_.size()));
    } catch (const Crime& e) {
      give_up(e.what());
    }
  }
}

void Machine::wake(Thread* thread) {
  thread->state = Thread::ready;
  ready_.push_back(thread);
}

void Machine::wait(const char* what, std::uint32_t id, Where at) {
  Thread& thread = me();
  thread.state = Thread::blocked, thread.waits_for = what, thread.waits_id = id, thread.at = at;
  run_somebody();
  if (giving_up_) throw Unwind{};
}

void Machine::give_way() {
  wake(&me());
  run_somebody();
  if (giving_up_) throw Unwind{};
}

void Machine::give_up(const std::string& text) {
  if (crime.empty()) crime = text;
  giving_up_ = true;
  landings_.clear();
  for (auto& group : tensor_) group.open.clear(), group.groups.clear();
  for (auto& thread : all_)
    if (thread->state == Thread::blocked) wake(thread.get());
}

// Who waits for what, alike ones together.
std::string Machine::deadlock() {
  std::map<std::string, std::vector<std::uint32_t>> who;
  const auto number = [](auto k) { return std::to_string(k); };
  for (int i = 0; i < threads; ++i) {
    const Thread& t = *all_[static_cast<std::size_t>(i)];
    if (t.state != Thread::blocked) continue;
    const std::string what = t.waits_for;
    std::string line = what + " at " + text(t.at);
    if (what == "barrier") {
      const NamedBarrier& b = barriers_[t.waits_id];
      line += " (barrier " + number(t.waits_id) + ", " + number(b.arrived) + " of " +
              number(b.expected) + " arrived)";
    } else if (what == "mbarrier") {
      const Mbarrier& b = mbarriers_.at(t.waits_id);
      line += " (mbarrier at shared+" + number(b.offset) + ", phase " + number(b.phase) + ", " +
              number(b.pending) + " arrivals and " + number(b.bytes) + " bytes missing)";
    }
    who[line].push_back(t.clock.id);
  }
  std::string out = "DEADLOCK: " + number(threads - unfinished_) + " threads finished";
  for (const auto& [line, ids] : who) {
    out += "; " + number(ids.size()) + " threads (" + number(ids.front());
    out += (ids.size() > 1 ? " .. " + number(ids.back()) : "") + ") wait for " + line;
  }
  return out;
}

}  // namespace plumbline::device::host
