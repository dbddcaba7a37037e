// reference/numeric/decisions.hpp
//
// Where a function is not smooth it takes a decision: the sign under a ReLU, the side of a clamp, a selection.
// Operations route each one through decide(). Ordinarily that returns what it is given. Under a Recording the
// decisions of one evaluation are kept; under a Replay another evaluation follows the recorded branch and notes
// where it would have gone elsewhere. A finite difference taken under Replay therefore differentiates the branch
// the gradient belongs to (ReLU has derivative 0 at 0), and each kink nearby is named.
// One thread only: gradcheck runs operations with one thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plumbline {

class Decisions {
 public:
  enum class Mode { off, record, replay };
  struct Kink {
    std::string what;
    std::int64_t b = -1, t = -1;
  };

  void record() { mode_ = Mode::record, taken_.clear(), kinks_.clear(); }
  void replay() { mode_ = Mode::replay, next_ = 0, kinks_.clear(); }
  void stop() { mode_ = Mode::off; }
  const std::vector<Kink>& kinks() const { return kinks_; }
  void at_row(std::int64_t b, std::int64_t t) { b_ = b, t_ = t; }

  std::int64_t decide(std::int64_t natural, const char* what) {
    if (mode_ == Mode::off) return natural;
    if (mode_ == Mode::record) {
      taken_.push_back(natural);
      return natural;
    }
    const std::int64_t recorded = next_ < taken_.size() ? taken_[next_] : natural;
    ++next_;
    if (recorded != natural && kinks_.size() < 16) kinks_.push_back({what, b_, t_});
    return recorded;
  }

 private:
  Mode mode_ = Mode::off;
  std::vector<std::int64_t> taken_;
  std::size_t next_ = 0;
  std::vector<Kink> kinks_;
  std::int64_t b_ = -1, t_ = -1;
};

inline Decisions& this_decisions() {
  thread_local Decisions decisions;
  return decisions;
}
inline bool decide(bool natural, const char* what) {
  return this_decisions().decide(natural ? 1 : 0, what) != 0;
}

}  // namespace plumbline
