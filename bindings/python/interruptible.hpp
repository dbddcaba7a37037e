// bindings/python/interruptible.hpp
//
// Long work without the GIL that Ctrl-C ends: it runs on a thread of its own, and the caller looks for signals while it
// waits. Rows that have begun are finished first.
#pragma once
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "reference/operation/stop.hpp"

namespace plumbline::bindings {

template <class F> auto interruptible(F work) -> decltype(work()) {
  namespace nb = nanobind;
  constexpr std::chrono::milliseconds between_looks{50};
  std::optional<decltype(work())> result;
  std::exception_ptr error;
  std::atomic<bool> stop{false};
  bool done = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::thread worker([&] {
    this_stop() = &stop;
    try {
      result = work();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_one();
  });
  std::optional<nb::python_error> interrupt;
  {
    const nb::gil_scoped_release without;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, between_looks, [&] { return done; })) {
      lock.unlock();
      {
        const nb::gil_scoped_acquire with;
        if (!interrupt && PyErr_CheckSignals() != 0) {
          interrupt.emplace();
          stop = true;
        }
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (interrupt) throw std::move(*interrupt);
  if (error) std::rethrow_exception(error);
  return std::move(*result);
}

}  // namespace plumbline::bindings
