// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/queue.hpp"

#include <csignal>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace moeperm::cann {
namespace {

// How long a worker dozes, longer while another thread runs a task, and how often in vain before it
// sleeps until it is woken.
constexpr std::chrono::microseconds kDoze(100);
constexpr std::chrono::microseconds kLongDoze(1000);
constexpr int kQuiet = 100;

std::atomic<std::int64_t> pending_tasks = 0;

// The queues whose tasks the thread is running, the innermost first: a callback may wait for
// another stream, whose tasks then run inside it.
struct Frame {
  const Queue* queue;
  const Frame* outer;
};
thread_local const Frame* frames = nullptr;

// All queues there are. Never destroyed: workers outlive static destruction.
struct AllQueues {
  std::mutex mutex;
  std::vector<std::weak_ptr<Queue>> queues;
};
AllQueues& All() {
  static AllQueues* const all = new AllQueues;
  return *all;
}

Status Execute(const Queue::Task& task) noexcept {
  try {
    if (task.waits_for != nullptr && !task.waits_for->reached()) {
      if (const std::shared_ptr<Queue> other = task.waits_on.lock()) other->Hurry();
      task.waits_for->Wait();
    }
    return task.work ? task.work() : Status();
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "out of memory"};
  } catch (const std::exception& error) {
    return {Code::kInternal, error.what()};
  } catch (...) {
    return {Code::kInternal, "unknown exception"};
  }
}

}  // namespace

void Point::Reach() {
  {
    const std::lock_guard lock(mutex_);
    if (reached()) return;
    time_ = Clock::now();
    reached_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

void Point::Wait() {
  if (reached()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached(); });
}

bool Point::WaitUntil(Clock::time_point deadline) {
  if (reached()) return true;
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return reached(); });
}

std::shared_ptr<Queue> Queue::Make() {
  std::shared_ptr<Queue> queue(new Queue);
  const std::lock_guard lock(All().mutex);
  std::erase_if(All().queues, [](const std::weak_ptr<Queue>& one) { return one.expired(); });
  All().queues.push_back(queue);
  return queue;
}

Queue::~Queue() { Close(Rest::kDiscard); }

std::uint64_t Queue::Push(Task task) {
  std::unique_lock lock(mutex_);
  if (closed_) return 0;
  if (!worker_.joinable() && !no_worker_) StartWorker();
  tasks_.push_back(std::move(task));
  pending_tasks.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t position = ++pushed_;
  if (no_worker_) {
    if (InTask()) return position;  // whoever runs that task goes on with this one
    while (CanRun()) {
      lock.unlock();
      Run(position);
      lock.lock();
      if (done_ >= position && CanRun()) RunOne(lock);
    }
    return position;
  }
  const bool told = worker_state_ == Worker::kSleeps || (worker_state_ == Worker::kDozes && !lazy_);
  if (told && !running_) {
    worker_state_ = Worker::kAwake;
    lock.unlock();
    work_.notify_one();
  }
  return position;
}

std::uint64_t Queue::pushed() const {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

std::uint64_t Queue::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void Queue::Run(std::uint64_t position) {
  std::unique_lock lock(mutex_);
  while (done_ < position) {
    if (CanRun() && (no_worker_ || !tasks_.front().worker_only)) {
      lazy_ = true;
      RunOne(lock);
    } else {
      if (CanRun()) WakeWorker();
      ++waiting_;
      progress_.wait(lock);
      --waiting_;
    }
  }
  if (CanRun()) WakeWorker();
}

void Queue::Hurry() {
  const std::lock_guard lock(mutex_);
  if (CanRun()) WakeWorker();
}

bool Queue::WaitUntil(std::uint64_t position, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  if (CanRun()) WakeWorker();
  ++waiting_;
  const bool done = progress_.wait_until(lock, deadline, [&] { return done_ >= position; });
  --waiting_;
  return done;
}

Status Queue::TakeError(std::uint64_t position) {
  const std::lock_guard lock(mutex_);
  if (error_.ok() || error_position_ > position) return {};
  return std::exchange(error_, Status());
}

void Queue::Close(Rest rest) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  if (rest == Rest::kRun) {
    const std::uint64_t last = pushed_;
    lock.unlock();
    Run(last);
    lock.lock();
  }
  std::deque<Task> discarded = std::exchange(tasks_, {});
  while (running_) {
    ++waiting_;
    progress_.wait(lock);
    --waiting_;
  }
  done_ = pushed_;
  stop_ = true;
  std::thread worker = std::move(worker_);
  lock.unlock();
  pending_tasks.fetch_sub(static_cast<std::int64_t>(discarded.size()), std::memory_order_relaxed);
  progress_.notify_all();
  work_.notify_one();
  for (Task& task : discarded) {
    if (task.reaches != nullptr) task.reaches->Reach();
  }
  discarded.clear();
  if (worker.joinable()) {
    if (worker.get_id() == std::this_thread::get_id()) {
      worker.detach();
    } else {
      worker.join();
    }
  }
}

bool Queue::InTask() const {
  for (const Frame* frame = frames; frame != nullptr; frame = frame->outer) {
    if (frame->queue == this) return true;
  }
  return false;
}

bool Queue::InAnyTask() { return frames != nullptr; }

std::int64_t Queue::Pending() { return pending_tasks.load(std::memory_order_acquire); }

std::vector<std::pair<std::shared_ptr<Queue>, std::uint64_t>> Queue::Busy() {
  std::vector<std::shared_ptr<Queue>> live;
  {
    const std::lock_guard lock(All().mutex);
    for (const std::weak_ptr<Queue>& one : All().queues) {
      if (std::shared_ptr<Queue> queue = one.lock()) live.push_back(std::move(queue));
    }
  }
  std::vector<std::pair<std::shared_ptr<Queue>, std::uint64_t>> busy;
  for (std::shared_ptr<Queue>& queue : live) {
    const std::lock_guard lock(queue->mutex_);
    if (queue->done_ < queue->pushed_) busy.emplace_back(queue, queue->pushed_);
  }
  return busy;
}

void Queue::StartWorker() {
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t saved;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &saved);
  try {
    worker_ = std::thread(&Queue::Work, this);
  } catch (const std::system_error&) {
    no_worker_ = true;
  }
  pthread_sigmask(SIG_SETMASK, &saved, nullptr);
}

void Queue::Work() {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0;
  int quiet = 0;  // times in a row that it dozed and nothing had been queued
  while (true) {
    if (CanRun()) {
      lazy_ = false;
      RunOne(lock);
    } else if (stop_) {
      return;
    } else if (lazy_ && quiet < kQuiet) {
      worker_state_ = Worker::kDozes;
      work_.wait_for(lock, running_ ? kLongDoze : kDoze);
      quiet = seen == pushed_ ? quiet + 1 : 0;
      seen = pushed_;
    } else {
      worker_state_ = Worker::kSleeps;
      work_.wait(lock);
      quiet = 0;
    }
    worker_state_ = Worker::kAwake;
  }
}

void Queue::RunOne(std::unique_lock<std::mutex>& lock) {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  running_ = true;
  lock.unlock();
  Status status;
  {
    const Frame frame{this, frames};
    frames = &frame;
    status = Execute(task);
    // What the task held is let go before anybody hears that it is done.
    task.work = nullptr;
    task.held = nullptr;
    frames = frame.outer;
  }
  if (task.reaches != nullptr) task.reaches->Reach();
  lock.lock();
  running_ = false;
  ++done_;
  pending_tasks.fetch_sub(1, std::memory_order_release);
  if (!status.ok() && error_.ok()) {
    error_ = std::move(status);
    error_position_ = done_;
  }
  if (waiting_ > 0) progress_.notify_all();
}

void Queue::WakeWorker() {
  if (worker_state_ == Worker::kAwake) return;
  worker_state_ = Worker::kAwake;
  work_.notify_one();
}

}  // namespace moeperm::cann
