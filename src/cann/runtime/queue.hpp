// SPDX-License-Identifier: Apache-2.0
// A stream's work: a queue whose tasks run in order, one at a time. A worker thread of its own runs
// them, but a thread that waits for the queue takes tasks itself rather than wait for the worker to
// wake up.
//
// Waking a sleeping thread costs more than a small operator does (15 us on a virtual machine). So
// where the program waits for what it queues, the worker is not woken for each task: it dozes, and
// looks itself whether something was left lying for it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "moeperm/status.hpp"

namespace moeperm::cann {

using Clock = std::chrono::steady_clock;

// A place in a queue. It is reached, once, when everything queued before it has run or was thrown
// away; a queue reaches all its points, whatever becomes of it.
class Point {
 public:
  bool reached() const { return reached_.load(std::memory_order_acquire); }
  Clock::time_point time() const { return time_; }  // when; once reached
  void Reach();
  void Wait();
  bool WaitUntil(Clock::time_point deadline);

 private:
  std::atomic<bool> reached_ = false;
  Clock::time_point time_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  struct Task {
    std::function<Status()> work;      // may be empty
    std::shared_ptr<Point> waits_for;  // before work; of another queue, or earlier in this one
    std::weak_ptr<Queue> waits_on;     // the queue of waits_for
    std::shared_ptr<Point> reaches;    // after work
    std::shared_ptr<const void> held;  // until it has run or was thrown away
    bool worker_only = false;          // never on a thread that waits
  };
  enum class Rest { kRun, kDiscard };

  static std::shared_ptr<Queue> Make();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  // The task's position: 1 is the first's. 0: the queue is closed.
  std::uint64_t Push(Task task);
  std::uint64_t pushed() const;
  std::uint64_t done() const;

  // Until the tasks up to `position` are done. Run lends a hand, WaitUntil only waits.
  void Run(std::uint64_t position);
  bool WaitUntil(std::uint64_t position, Clock::time_point deadline);

  // For who waits without lending a hand, or keeps asking: wakes the worker if something lies
  // there.
  void Hurry();

  // The first failure since the last one taken, unless it came after `position`. An exception that
  // left a task is a failure too.
  Status TakeError(std::uint64_t position);

  // Takes no more tasks, runs or throws away those it has, and ends the worker. The task that is
  // running is waited for. Not to be called by a task of this queue.
  void Close(Rest rest);

  // Whether the calling thread runs a task of this queue; of any queue.
  bool InTask() const;
  static bool InAnyTask();

  // Tasks of all queues that are not done, and the queues that hold them with their last position.
  static std::int64_t Pending();
  static std::vector<std::pair<std::shared_ptr<Queue>, std::uint64_t>> Busy();

 private:
  Queue() = default;
  void StartWorker();
  void Work();
  bool CanRun() const { return !running_ && !tasks_.empty(); }
  void RunOne(std::unique_lock<std::mutex>& lock);
  void WakeWorker();  // with the lock held

  mutable std::mutex mutex_;
  std::condition_variable work_;  // for the worker
  std::condition_variable progress_;
  std::deque<Task> tasks_;
  std::uint64_t pushed_ = 0;
  std::uint64_t done_ = 0;
  bool running_ = false;
  bool closed_ = false;
  bool stop_ = false;
  enum class Worker { kAwake, kDozes, kSleeps } worker_state_ = Worker::kAwake;
  bool lazy_ = false;       // the last task was run by a thread that waited for it
  bool no_worker_ = false;  // none could be started: tasks run where they are pushed
  int waiting_ = 0;         // on progress_
  Status error_;
  std::uint64_t error_position_ = 0;
  std::thread worker_;
};

}  // namespace moeperm::cann
