// tools/progress.hpp
//
// A line on stderr that says that something takes long: only after a second, and only where somebody looks.
#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace plumbline {

class Progress {
 public:
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // wipes the line

 private:
  void show();

  std::string what_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace plumbline
