// reference/operation/stop.hpp
//
// How somebody who waits for a long evaluation calls it off: rows that have not begun are not computed, and the
// evaluation ends in Stopped. Never an Error, so that nobody who tries another way takes it for a refusal.
#pragma once
#include <atomic>
#include <exception>

namespace plumbline {

struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

// Of evaluations that this thread begins; null, as it is at first: nobody will call them off.
const std::atomic<bool>*& this_stop();

}  // namespace plumbline
