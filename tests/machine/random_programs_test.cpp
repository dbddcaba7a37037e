// Random programs of accesses and synchronisations: the shadow must report a crime exactly when
// there is one. Who knows what is found a second time here, without clocks: every access is
// followed forward through the program, by brute force, as a set of threads it has reached.
#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <vector>

#include "device/machine/machine.hpp"

namespace plumbline::device::host {
namespace {

constexpr int programs = 20000;
constexpr int threads = 128, bytes = 64, barriers = 4;

enum Kind {
  access,      // thread, at, size, touch
  copy,        // thread, at: 16 bytes by cp.async, then a commit, or an arrival on barrier
  bulk,        // thread, at: 16 bytes by a bulk copy on barrier, and its arrival
  store,       // thread, at: 16 bytes read by a bulk store, then a commit
  meet_block,  //
  meet_warp,   // warp
  meet_named,  // mask of warps, arrivers among them
  wait_copies,
  wait_for_stores,
  arrive,
  wait,
  fence  // thread, barrier
};
struct Step {
  Kind kind;
  int thread = 0, at = 0, size = 16;
  Touch touch = Touch::write;
  int barrier = -1;
  int mask = 0, arrivers = 0, number = 0;

  bool touches() const { return kind <= store; }
  bool by_proxy() const { return kind == bulk || kind == store; }
  bool asynchronous() const { return kind != access; }
  bool in_warp(int t) const { return mask >> (t / 32) & 1; }
};
using Program = std::vector<Step>;

// ---- the oracle ---------------------------------------------------------------------------------

// What step i has reached before each later step: threads that know it, threads that know it
// fenced.
struct Reach {
  std::vector<bool> known, fenced;  // by the thread of step j
};

Reach follow(const Program& program, std::size_t i) {
  const Step& p = program[i];
  std::bitset<threads> known, fenced;
  bool in_barrier[barriers] = {}, fenced_in_barrier[barriers] = {};
  if (p.kind == access) known.set(static_cast<std::size_t>(p.thread));
  if ((p.kind == copy || p.kind == bulk) && p.barrier >= 0) in_barrier[p.barrier] = true;
  Reach out{std::vector<bool>(program.size()), std::vector<bool>(program.size())};

  for (std::size_t j = i + 1; j < program.size(); ++j) {
    const Step& q = program[j];
    const auto t = static_cast<std::size_t>(q.thread);
    out.known[j] = known[t], out.fenced[j] = fenced[t];
    const auto meeting = [&](auto arrives, auto waits) {
      for (auto* set : {&known, &fenced}) {
        bool reached = false;
        for (int u = 0; u < threads; ++u)
          reached |= arrives(u) && (*set)[static_cast<std::size_t>(u)];
        for (int u = 0; u < threads && reached; ++u)
          if (waits(u)) set->set(static_cast<std::size_t>(u));
      }
    };
    const auto all = [](int) { return true; };
    const auto of_warp = [&](int u) { return u / 32 == q.thread / 32; };
    const auto named = [&](int u) { return q.in_warp(u); };
    const auto waits = [&](int u) { return q.in_warp(u) && !(q.arrivers >> (u / 32) & 1); };
    switch (q.kind) {
      case meet_block: meeting(all, all); break;
      case meet_warp: meeting(of_warp, of_warp); break;
      case meet_named: meeting(named, waits); break;
      case fence:
        if (known[t]) fenced.set(t);
        break;
      case wait_copies:  // only of groups: the last commit covers all copies before it
        if (p.kind == copy && p.thread == q.thread) {
          bool committed = false;
          for (std::size_t k = i; k < j; ++k)
            committed |=
                program[k].kind == copy && program[k].thread == q.thread && program[k].barrier < 0;
          if (committed) known.set(t);
        }
        break;
      case wait_for_stores:
        if (p.kind == store && p.thread == q.thread) known.set(t);
        break;
      case copy:  // its arrival speaks for all earlier copies of the thread
        if (q.barrier >= 0 && p.kind == copy && p.thread == q.thread) in_barrier[q.barrier] = true;
        break;
      case bulk:
      case arrive:
        in_barrier[q.barrier] |= known[t], fenced_in_barrier[q.barrier] |= fenced[t];
        break;
      case wait:
        if (in_barrier[q.barrier]) known.set(t);
        if (fenced_in_barrier[q.barrier]) fenced.set(t);
        break;
      case access:
      case store: break;
    }
  }
  return out;
}

// A crime between steps on one cell. An access that a later write on the same cell knows is behind
// that write for whoever knows the write, also where the write's own thread is not asked: a copy
// does not land before what its issuer knew.
bool crime_on(int cell, const Program& program, const std::vector<Reach>& reach) {
  std::vector<std::size_t> here;
  for (std::size_t i = 0; i < program.size(); ++i)
    if (program[i].touches() && program[i].at < cell + 2 && cell < program[i].at + program[i].size)
      here.push_back(i);
  const std::size_t n = here.size();
  std::vector<std::vector<bool>> ordered(n, std::vector<bool>(n)), behind = ordered;
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t a = 0; a + length < n; ++a) {
      const std::size_t b = a + length;
      for (std::size_t w = a + 1; w < b; ++w)
        if (program[here[w]].touch == Touch::write && ordered[a][w] && ordered[w][b])
          behind[a][b] = true;
      ordered[a][b] = behind[a][b] || reach[here[a]].known[here[b]];
      const Step &p = program[here[a]], &q = program[here[b]];
      const bool peaceful = p.touch == q.touch && p.touch != Touch::write;
      if (!peaceful && !ordered[a][b]) return true;
      const bool ordinary_write = !p.by_proxy() && p.touch != Touch::read;
      if (!peaceful && q.by_proxy() && ordinary_write && !behind[a][b] &&
          !reach[here[a]].fenced[here[b]])
        return true;
    }
  return false;
}

bool has_crime(const Program& program) {
  std::vector<Reach> reach(program.size());
  for (std::size_t i = 0; i < program.size(); ++i)
    if (program[i].touches()) reach[i] = follow(program, i);
  for (int cell = 0; cell < bytes; cell += 2)
    if (crime_on(cell, program, reach)) return true;
  return false;
}

// ---- the same program on the machine ------------------------------------------------------------

struct Interpreter {
  static constexpr int threads = host::threads;
  struct Args {
    const Program* program;
    int arrivals[barriers];
    View<const float, 2> source;  // 1 4
    View<float, 2> target;        // steps 4
  };
  struct Plan {
    Array<bf16, bytes / 2> x;
    Barrier barrier[barriers];
  };

  static void perform(const Args& a, Plan& s, const Step& p, std::size_t number) {
    Machine& m = Machine::current();
    const int t = thread();
    char* const at = reinterpret_cast<char*>(&s.x) + p.at;
    const Where here = Where::here();
    if (p.kind == meet_block) sync_block();
    if (p.kind == meet_warp && t / 32 == p.thread / 32) sync_warp();
    if (p.kind == meet_named && p.in_warp(t)) {
      const int count = 32 * std::popcount(static_cast<unsigned>(p.mask));
      if (p.arrivers >> (t / 32) & 1)
        arrive_named(p.number, count);
      else
        sync_named(p.number, count);
    }
    if (p.kind == meet_block || p.kind == meet_warp || p.kind == meet_named || t != p.thread)
      return;
    switch (p.kind) {
      case access: m.touch(m.shared(), at, p.size, p.touch, here); break;
      case copy:
        m.copy_async16(m.shared(), at, a.source.region(), a.source.data(), true, here);
        if (p.barrier >= 0)
          s.barrier[p.barrier].arrive_when_copied();
        else
          commit();
        break;
      case bulk:
        s.barrier[p.barrier].arrive_expect(16);
        m.copy_bulk({{&a.source.region(), a.source.data(), at}}, &s.barrier[p.barrier], here);
        break;
      case store:
        m.store_bulk({{&a.target.region(), at, a.target.data() + 4 * number}}, here);
        commit_stores();
        break;
      case wait_copies: wait_groups<0>(); break;
      case wait_for_stores: wait_stores<0>(); break;
      case arrive: s.barrier[p.barrier].arrive(); break;
      case wait: s.barrier[p.barrier].wait(0); break;
      default: fence_async();
    }
  }

  static void run(const Args& a, Plan& s) {
    if (thread() == 0) {
      for (int i = 0; i < bytes / 2; ++i) s.x[i] = bf16{0};
      for (int i = 0; i < barriers; ++i) s.barrier[i].init(std::max(1, a.arrivals[i]));
      fence_async();
    }
    sync_block();
    for (std::size_t i = 0; i < a.program->size(); ++i) perform(a, s, (*a.program)[i], i);
  }
};

// ---- programs -----------------------------------------------------------------------------------

class Author {
 public:
  explicit Author(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  Program write() {
    Program program;
    few_ = below(2) == 0;
    const int steps = 3 + below(22), writes = 1 + below(6), syncs = 2 + below(5);
    int named = 0;
    for (int i = 0; i < steps; ++i)
      program.push_back(below(8) < syncs ? synchronisation(named) : touch(writes));
    add_waits(program);
    return program;
  }

 private:
  int somebody() { return few_ ? below(4) * 32 + below(2) : below(threads); }

  Step touch(int writes) {
    Step p{access, somebody()};
    p.at = below(4) * 16;
    const int what = below(16);
    if (what < 3) return p.kind = copy, p.barrier = p.thread / 32 % 2 ? below(barriers) : -1, p;
    if (what < 5) return p.kind = bulk, p.barrier = below(barriers), p;
    if (what < 6) return p.kind = store, p.touch = Touch::read, p;
    p.size = below(3) == 0 ? 2 : below(2) ? 4 : 16;
    p.at = below(bytes / p.size) * p.size;
    p.touch = below(6) < writes ? (below(3) ? Touch::write : Touch::atomic) : Touch::read;
    return p;
  }

  Step synchronisation(int& named) {
    Step p{meet_block, somebody()};
    switch (below(8)) {
      case 0: p.kind = meet_warp; break;
      case 1:
      case 2:
        if (named == 15) break;
        p.kind = meet_named, p.number = ++named;
        p.mask = 1 + below(15);
        p.arrivers = p.mask & below(16);
        if (p.arrivers == p.mask) p.arrivers &= p.arrivers - 1;  // somebody waits
        break;
      case 3: p.kind = wait_copies; break;
      case 4: p.kind = wait_for_stores; break;
      case 5: p.kind = arrive, p.barrier = below(barriers); break;
      case 6: p.kind = fence; break;
      default: break;
    }
    return p;
  }

  // Waits come anywhere after a barrier's last arrival, so that its first phase ends.
  void add_waits(Program& program) {
    for (int b = 0; b < barriers; ++b) {
      std::size_t last = 0;
      for (std::size_t i = 0; i < program.size(); ++i)
        if (program[i].barrier == b && program[i].kind != wait) last = i + 1;
      for (int k = last ? below(4) : 0; k > 0; --k) {
        const int room = static_cast<int>(program.size() - last) + 1;
        Step p{wait, somebody()};
        p.barrier = b;
        program.insert(program.begin() + static_cast<std::ptrdiff_t>(last) + below(room), p);
      }
    }
  }

  std::mt19937 random_;
  bool few_ = false;
};

TEST(RandomPrograms, CrimesAreReportedExactlyWhenThereAreAny) {
  Author author(1);
  const std::vector<float> source(4);
  int guilty = 0, races = 0, fences = 0;
  for (int trial = 0; trial < programs; ++trial) {
    const Program program = author.write();
    std::vector<float> target(4 * program.size());
    Stream stream({.seed = static_cast<std::uint64_t>(trial), .late = trial % 2 == 0});
    stream.input("source", source.data(), source.size());
    stream.workspace("target", target.data(), target.size());
    Interpreter::Args args{&program,
                           {},
                           {source.data(), {1, 4}},
                           {target.data(), {static_cast<std::int64_t>(program.size()), 4}}};
    for (const Step& p : program)
      if (p.barrier >= 0 && p.kind != wait) ++args.arrivals[p.barrier];
    launch<Interpreter>(stream, {1}, args);
    std::string report = stream.error();
    if (report.starts_with("IN FLIGHT")) report.clear();  // programs end as they like
    const bool expected = has_crime(program);
    races += report.starts_with("RACE"), fences += report.starts_with("PROXY FENCE");
    guilty += expected;
    ASSERT_EQ(expected, !report.empty()) << "program " << trial << ": " << report;
    ASSERT_TRUE(report.empty() || report.starts_with("RACE") || report.starts_with("PROXY FENCE"))
        << report;
  }
  std::printf("%d programs: %d with a crime (reported as %d races, %d missing fences), %d clean\n",
              programs, guilty, races, fences, programs - guilty);
  // Both verdicts must be common, or the test says little.
  EXPECT_GT(guilty, programs / 5);
  EXPECT_LT(guilty, programs * 4 / 5);
  EXPECT_GT(fences, programs / 100);
}

}  // namespace
}  // namespace plumbline::device::host
