// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace moeperm::cli {
namespace {

constexpr int kBarWidth = 30;

std::string Bar(double part) {
  const int full = static_cast<int>(part * kBarWidth);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < full ? "█" : "░";
  return bar;
}

}  // namespace

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)), total_(total) {
  if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { Loop(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_one();
  thread_.join();
}

void Progress::SetLabel(std::string label) {
  const std::scoped_lock lock(mutex_);
  label_ = std::move(label);
}

void Progress::Loop() {
  using std::chrono::steady_clock;
  const steady_clock::time_point start = steady_clock::now();
  std::unique_lock lock(mutex_);
  const auto stopped = [this] { return stop_; };
  if (stop_signal_.wait_for(lock, std::chrono::seconds(1), stopped)) return;
  do {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
    const std::uint64_t total = total_;
    std::string line = fmt::format("\r\x1b[K{} ", label_);
    if (total > 0) {
      const double part = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total));
      line += fmt::format("{} {:3.0f} % ", Bar(part), part * 100);
    }
    fmt::print(stderr, "{}{:.1f} s", line, seconds);
    std::fflush(stderr);
  } while (!stop_signal_.wait_for(lock, std::chrono::milliseconds(100), stopped));
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace moeperm::cli
