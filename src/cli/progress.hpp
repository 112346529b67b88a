// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr: only on a terminal, and only once something takes over a second.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace moeperm::cli {

class Progress {
 public:
  // Without a total it shows that work goes on, and for how long.
  explicit Progress(std::string label, std::uint64_t total = 0);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Set(std::uint64_t done) noexcept { done_ = done; }
  void SetTotal(std::uint64_t total) noexcept { total_ = total; }
  void SetLabel(std::string label);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::string label_;
  std::atomic<std::uint64_t> total_;
  std::atomic<std::uint64_t> done_ = 0;
  std::thread thread_;
};

}  // namespace moeperm::cli
