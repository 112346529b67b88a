// SPDX-License-Identifier: Apache-2.0
// An event is a point in a stream: the place behind what the stream held at the last record. Before
// the first record there is nothing to wait for, and it counts as complete.
#include <chrono>
#include <memory>
#include <utility>

#include "acl/acl.h"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"
#include "cann/runtime/wait.hpp"

namespace moeperm::cann {
namespace {

constexpr std::uint32_t kAllFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                                    ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY |
                                    ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

int Create(const char* function, aclrtEvent* handle, std::uint32_t flags, bool repeats) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "event"));
  if (flags == 0 || (flags & ~kAllFlags) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                msg::BadValue(function, "flag", flags, "a union of ACL_EVENT_ flags"));
  }
  auto event = std::make_shared<Event>();
  event->flags = flags;
  event->repeats = repeats;
  *handle = GetState().events.Add(std::move(event));
  return ACL_SUCCESS;
}

int Find(const char* function, const char* argument, aclrtEvent handle,
         std::shared_ptr<Event>* event) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, argument));
  *event = GetState().events.Find(handle);
  if (*event == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(function, argument, handle, "event"));
  }
  return ACL_SUCCESS;
}

bool Complete(Event& event) {
  const std::lock_guard lock(event.mutex);
  if (event.point == nullptr || event.point->reached()) return true;
  if (const std::shared_ptr<Queue> queue = event.queue.lock()) queue->Hurry();
  return false;
}

int Synchronize(const char* function, aclrtEvent handle, std::int32_t milliseconds) {
  const Timeout timeout(milliseconds, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  std::shared_ptr<Event> event;
  if (const int code = BadTimeout(function, milliseconds); code != ACL_SUCCESS) return code;
  if (const int code = Find(function, "event", handle, &event); code != ACL_SUCCESS) return code;
  std::shared_ptr<Point> point;
  std::shared_ptr<Queue> queue;
  std::uint64_t position = 0;
  {
    const std::lock_guard lock(event->mutex);
    point = event->point;
    queue = event->queue.lock();
    position = event->position;
  }
  if (point == nullptr) return ACL_SUCCESS;
  if (queue != nullptr) return WaitFor(function, *queue, position, timeout);
  point->Wait();  // its stream is gone: nothing is left to wait for, but for a thread that is at it
  return ACL_SUCCESS;
}

// When the event was reached, in `time`; the codes of calls that ask for it.
int ReachedAt(const char* function, const char* argument, Event& event, Clock::time_point* time) {
  if ((event.flags & ACL_EVENT_TIME_LINE) == 0) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, msg::NoTimes(function, argument));
  }
  const std::lock_guard lock(event.mutex);
  if (event.point == nullptr) {
    return Fail(ACL_ERROR_RT_INTERNAL_ERROR, msg::NeverRecorded(function, argument));
  }
  if (!event.point->reached()) {
    return Fail(ACL_ERROR_RT_EVENT_NOT_COMPLETE, msg::NotReached(function, argument));
  }
  *time = event.point->time();
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtCreateEvent(aclrtEvent* event) try {
  return Create("aclrtCreateEvent", event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE, false);
} catch (...) {
  return Caught("aclrtCreateEvent");
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) try {
  return Create("aclrtCreateEventWithFlag", event, flag, false);
} catch (...) {
  return Caught("aclrtCreateEventWithFlag");
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) try {
  return Create("aclrtCreateEventExWithFlag", event, flag, true);
} catch (...) {
  return Caught("aclrtCreateEventExWithFlag");
}

aclError aclrtDestroyEvent(aclrtEvent handle) try {
  constexpr const char* kFunction = "aclrtDestroyEvent";
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "event"));
  if (GetState().events.Take(handle) == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(kFunction, "event", handle, "event"));
  }
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtDestroyEvent");
}

aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream_handle) try {
  constexpr const char* kFunction = "aclrtRecordEvent";
  std::shared_ptr<Event> event;
  std::shared_ptr<Stream> stream;
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  if (const int code = FindStream(kFunction, stream_handle, &stream); code != ACL_SUCCESS) {
    return code;
  }
  Queue::Task task;
  task.reaches = std::make_shared<Point>();
  std::shared_ptr<Point> point = task.reaches;
  const std::lock_guard lock(event->mutex);
  const std::uint64_t position = stream->queue->Push(std::move(task));
  if (position == 0) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                msg::NotLive(kFunction, "stream", stream_handle, "stream"));
  }
  event->point = std::move(point);
  event->queue = stream->queue;
  event->position = position;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtRecordEvent");
}

// The event forgets its record at once; who waits for it already goes on doing so.
aclError aclrtResetEvent(aclrtEvent handle, aclrtStream stream_handle) try {
  constexpr const char* kFunction = "aclrtResetEvent";
  std::shared_ptr<Event> event;
  std::shared_ptr<Stream> stream;
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  if (event->repeats) return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::NoResets(kFunction));
  if (const int code = FindStream(kFunction, stream_handle, &stream); code != ACL_SUCCESS) {
    return code;
  }
  const std::lock_guard lock(event->mutex);
  event->point = nullptr;
  event->queue.reset();
  event->position = 0;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtResetEvent");
}

aclError aclrtStreamWaitEvent(aclrtStream stream_handle, aclrtEvent handle) try {
  constexpr const char* kFunction = "aclrtStreamWaitEvent";
  std::shared_ptr<Event> event;
  std::shared_ptr<Stream> stream;
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  if (const int code = FindStream(kFunction, stream_handle, &stream); code != ACL_SUCCESS) {
    return code;
  }
  Queue::Task task;
  {
    const std::lock_guard lock(event->mutex);
    task.waits_for = event->point;
    task.waits_on = event->queue;
    task.held = event->waits;
  }
  return Push(kFunction, *stream, std::move(task));
} catch (...) {
  return Caught("aclrtStreamWaitEvent");
}

aclError aclrtQueryEvent(aclrtEvent handle, aclrtEventStatus* status) try {
  constexpr const char* kFunction = "aclrtQueryEvent";
  std::shared_ptr<Event> event;
  if (status == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "status"));
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  if (event->repeats) return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::NoResets(kFunction));
  *status = Complete(*event) ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtQueryEvent");
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* status) try {
  constexpr const char* kFunction = "aclrtQueryEventStatus";
  std::shared_ptr<Event> event;
  if (status == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "status"));
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  *status =
      Complete(*event) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtQueryEventStatus");
}

aclError aclrtQueryEventWaitStatus(aclrtEvent handle, aclrtEventWaitStatus* status) try {
  constexpr const char* kFunction = "aclrtQueryEventWaitStatus";
  std::shared_ptr<Event> event;
  if (status == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "status"));
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  *status = event->waits.use_count() <= 1 ? ACL_EVENT_WAIT_STATUS_COMPLETE
                                          : ACL_EVENT_WAIT_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtQueryEventWaitStatus");
}

aclError aclrtSynchronizeEvent(aclrtEvent event) try {
  return Synchronize("aclrtSynchronizeEvent", event, -1);
} catch (...) {
  return Caught("aclrtSynchronizeEvent");
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) try {
  return Synchronize("aclrtSynchronizeEventWithTimeout", event, timeout);
} catch (...) {
  return Caught("aclrtSynchronizeEventWithTimeout");
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) try {
  constexpr const char* kFunction = "aclrtEventElapsedTime";
  std::shared_ptr<Event> start;
  std::shared_ptr<Event> end;
  if (ms == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "ms"));
  if (const int code = Find(kFunction, "startEvent", startEvent, &start); code != ACL_SUCCESS) {
    return code;
  }
  if (const int code = Find(kFunction, "endEvent", endEvent, &end); code != ACL_SUCCESS) {
    return code;
  }
  Clock::time_point from;
  Clock::time_point to;
  if (const int code = ReachedAt(kFunction, "startEvent", *start, &from); code != ACL_SUCCESS) {
    return code;
  }
  if (const int code = ReachedAt(kFunction, "endEvent", *end, &to); code != ACL_SUCCESS) {
    return code;
  }
  if (to < from) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, msg::EndBeforeStart(kFunction));
  }
  *ms = std::chrono::duration<float, std::milli>(to - from).count();
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtEventElapsedTime");
}

aclError aclrtEventGetTimestamp(aclrtEvent handle, uint64_t* timestamp) try {
  constexpr const char* kFunction = "aclrtEventGetTimestamp";
  std::shared_ptr<Event> event;
  if (timestamp == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "timestamp"));
  if (const int code = Find(kFunction, "event", handle, &event); code != ACL_SUCCESS) return code;
  Clock::time_point time;
  if (const int code = ReachedAt(kFunction, "event", *event, &time); code != ACL_SUCCESS) {
    return code;
  }
  *timestamp = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtEventGetTimestamp");
}

}  // extern "C"
