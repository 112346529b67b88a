// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/fp_environment.hpp"

namespace moeperm {

int DefaultThreadCount() { return tbb::info::default_concurrency(); }

namespace {

// oneTBB starts at most as many workers as there are processors unless told otherwise, and says so
// on stderr where an arena asks for more. Of several limits the lowest holds, so there is one of
// ours in the process, raised to the most that any pool wants and never taken back.
// Returns the limit then, which a host program may have set lower: fewer threads then do the tasks
// of more.
std::size_t AllowThreads(int num_threads) {
  using tbb::global_control;
  static std::mutex mutex;
  static int allowed = DefaultThreadCount();
  static global_control* control = nullptr;
  const std::lock_guard lock(mutex);
  if (num_threads > allowed) {
    delete std::exchange(control, nullptr);
    allowed = DefaultThreadCount();  // should the next line throw
    control = new global_control(global_control::max_allowed_parallelism,
                                 static_cast<std::size_t>(num_threads));
    allowed = num_threads;
  }
  return global_control::active_value(global_control::max_allowed_parallelism);
}

int ArenaSize(int num_threads) {
  return static_cast<int>(
      std::min(static_cast<std::size_t>(num_threads), AllowThreads(num_threads)));
}

}  // namespace

struct ThreadPool::Arena {
  explicit Arena(int num_threads) : arena(ArenaSize(num_threads)) {}
  tbb::task_arena arena;
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads),
      arena_(num_threads > 1 ? std::make_unique<Arena>(num_threads) : nullptr) {}

ThreadPool::~ThreadPool() = default;

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer sees no order between tasks that Debian's oneTBB, which is not built for it,
// hands over: every result would look like a race. Plain threads show it the races of the tasks
// themselves.
void RunOnThreads(int num_threads, int count, const std::function<void(int)>& task) {
  std::atomic<int> next = 0;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    const DefaultFpEnvironment environment;
    try {
      for (int i = next++; i < count; i = next++) task(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::jthread> team;
  for (int thread = 1; thread < std::min(num_threads, count); ++thread) team.emplace_back(work);
  work();
  team.clear();
  if (failure) std::rethrow_exception(failure);
}
#endif

void ThreadPool::Run(int count, const std::function<void(int)>& task) const {
  if (count <= 0) return;
  if (count == 1 || arena_ == nullptr) {
    const DefaultFpEnvironment environment;
    for (int i = 0; i < count; ++i) task(i);
    return;
  }
#if defined(__SANITIZE_THREAD__)
  return RunOnThreads(num_threads_, count, task);
#else
  const auto run = [&](const tbb::blocked_range<int>& range) {
    const DefaultFpEnvironment environment;
    for (int i = range.begin(); i < range.end(); ++i) task(i);
  };
  const tbb::blocked_range<int> all(0, count, 1);
  arena_->arena.execute([&] {
    if (count <= num_threads_) {
      // One task a thread, the same one each time: it finds in its caches what the task before it
      // of that number left there.
      tbb::parallel_for(all, run, tbb::static_partitioner());
    } else {
      tbb::parallel_for(all, run, tbb::simple_partitioner());
    }
  });
#endif
}

}  // namespace moeperm
