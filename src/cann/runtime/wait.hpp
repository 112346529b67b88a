// SPDX-License-Identifier: Apache-2.0
// Queueing and waiting, as the calls of the interface share it.
#pragma once

#include <cstdint>

#include "cann/runtime/queue.hpp"
#include "cann/runtime/state.hpp"

namespace moeperm::cann {

// `code` where the time is up.
struct Timeout {
  Timeout(std::int32_t given, int its_code)
      : milliseconds(given),
        code(its_code),
        deadline(Clock::now() + std::chrono::milliseconds(given < 0 ? 0 : given)) {}
  bool forever() const { return milliseconds < 0; }
  std::int32_t milliseconds;
  int code;
  Clock::time_point deadline;
};

// 107000 below -1.
int BadTimeout(const char* function, std::int32_t timeout);

// 107017 where the stream was closed meanwhile.
int Push(const char* function, const Stream& stream, Queue::Task task);

// Waits for the queue's tasks up to `position`. Hands out the queue's failure, if there is one.
// 207000 for a task that would wait for itself.
int WaitFor(const char* function, Queue& queue, std::uint64_t position, const Timeout& timeout);

}  // namespace moeperm::cann
