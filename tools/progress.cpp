#include "tools/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace plumbline {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::show() {
  using namespace std::chrono_literals;
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const auto finished = [this] { return done_; };
  if (changed_.wait_for(lock, 1s, finished)) return;
  do {
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    fmt::print(stderr, "\r{} … {} s\x1b[K", what_, elapsed.count());
    std::fflush(stderr);
  } while (!changed_.wait_for(lock, 500ms, finished));
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace plumbline
