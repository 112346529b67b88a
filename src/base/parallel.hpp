// SPDX-License-Identifier: Apache-2.0
// Threads. parallel.cpp is the one file that knows what they are; kernels get a range of work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

namespace moeperm {

inline constexpr int kMaxThreads = 4096;

class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const { return num_threads_; }

  // Calls task(0) .. task(count - 1), each once, in any order and on any thread, in the default
  // floating-point environment; returns when all are done. One task runs on the calling thread. An
  // exception of a task is thrown again here.
  void Run(int count, const std::function<void(int)>& task) const;

 private:
  struct Arena;
  int num_threads_;
  std::unique_ptr<Arena> arena_;
};

// Processors this process may use.
int DefaultThreadCount();

// [0, size) cut into `count` nearly equal ranges.
struct Range {
  std::int64_t begin;
  std::int64_t end;
};
inline Range CutRange(std::int64_t size, int count, int index) {
  const std::int64_t each = size / count;
  const std::int64_t rest = size % count;
  const std::int64_t begin = each * index + std::min<std::int64_t>(index, rest);
  return {begin, begin + each + (index < rest ? 1 : 0)};
}

// How many tasks to cut `items` into that move `bytes` in all: one where a second thread would
// cost more than it brings, else `per_thread` for each thread, so that a thread that is slowed down
// does not hold up the others.
inline int TaskCount(const ThreadPool& pool, std::int64_t items, std::int64_t bytes,
                     int per_thread) {
  constexpr std::int64_t kMinBytesPerTask = std::int64_t{64} << 10;
  if (pool.num_threads() == 1) return 1;
  const std::int64_t most = std::min<std::int64_t>(items, bytes / kMinBytesPerTask);
  return static_cast<int>(
      std::clamp<std::int64_t>(most, 1, std::int64_t{per_thread} * pool.num_threads()));
}

}  // namespace moeperm
