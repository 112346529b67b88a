// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/stream.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "acl/acl.h"
#include "cann/runtime/allocations.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"
#include "cann/runtime/wait.hpp"

namespace moeperm::cann {

int Push(const char* function, const Stream& stream, Queue::Task task) {
  if (stream.queue->Push(std::move(task)) == 0) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                msg::NotLive(function, "stream", stream.handle, "stream"));
  }
  return ACL_SUCCESS;
}

int Enqueue(void* stream, std::function<Status()> work) noexcept try {
  std::shared_ptr<Stream> its;
  if (const int code = FindStream("launch", stream, &its); code != ACL_SUCCESS) return code;
  Queue::Task task;
  task.work = std::move(work);
  return Push("launch", *its, std::move(task));
} catch (...) {
  return Caught("launch");
}

int BadTimeout(const char* function, std::int32_t timeout) {
  if (timeout >= -1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              msg::BadValue(function, "timeout", timeout, "-1 or more"));
}

int WaitFor(const char* function, Queue& queue, std::uint64_t position, const Timeout& timeout) {
  if (queue.InTask() && queue.done() < position) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(function));
  }
  if (timeout.forever()) {
    queue.Run(position);
  } else if (!queue.WaitUntil(position, timeout.deadline)) {
    return Fail(timeout.code, msg::TimedOut(function, timeout.milliseconds));
  }
  ReleaseFreed();
  return ExecutionError(function, queue.TakeError(position));
}

namespace {

int Synchronize(const char* function, aclrtStream handle, std::int32_t milliseconds) {
  const Timeout timeout(milliseconds, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  std::shared_ptr<Stream> stream;
  if (const int code = BadTimeout(function, milliseconds); code != ACL_SUCCESS) return code;
  if (const int code = FindStream(function, handle, &stream); code != ACL_SUCCESS) return code;
  return WaitFor(function, *stream->queue, stream->queue->pushed(), timeout);
}

int Create(const char* function, aclrtStream* handle) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "stream"));
  const std::shared_ptr<Context> context = CurrentContext();
  const std::shared_ptr<Stream> stream = context == nullptr ? nullptr : MakeStream(*context);
  if (stream == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(function));
  *handle = stream->handle;
  return ACL_SUCCESS;
}

int Destroy(const char* function, aclrtStream handle, Queue::Rest rest) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "stream"));
  State& state = GetState();
  std::shared_ptr<Stream> stream = state.streams.Find(handle);
  if (stream != nullptr && stream->queue->InTask()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(function));
  }
  stream = state.streams.Take(handle);
  if (stream == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(function, "stream", handle, "stream"));
  }
  if (const std::shared_ptr<Context> context = state.contexts.Find(stream->context)) {
    const std::lock_guard lock(context->mutex);
    std::erase(context->streams, handle);
  }
  stream->queue->Close(rest);
  ReleaseFreed();
  if (rest == Queue::Rest::kDiscard) return ACL_SUCCESS;
  return ExecutionError(function, stream->queue->TakeError(stream->queue->pushed()));
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) try {
  return Create("aclrtCreateStream", stream);
} catch (...) {
  return Caught("aclrtCreateStream");
}

// Priorities and flags are wishes about hardware queues.
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) try {
  return Create("aclrtCreateStreamWithConfig", stream);
} catch (...) {
  return Caught("aclrtCreateStreamWithConfig");
}

aclError aclrtDestroyStream(aclrtStream stream) try {
  return Destroy("aclrtDestroyStream", stream, Queue::Rest::kRun);
} catch (...) {
  return Caught("aclrtDestroyStream");
}

aclError aclrtDestroyStreamForce(aclrtStream stream) try {
  return Destroy("aclrtDestroyStreamForce", stream, Queue::Rest::kDiscard);
} catch (...) {
  return Caught("aclrtDestroyStreamForce");
}

aclError aclrtSynchronizeStream(aclrtStream stream) try {
  return Synchronize("aclrtSynchronizeStream", stream, -1);
} catch (...) {
  return Caught("aclrtSynchronizeStream");
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) try {
  return Synchronize("aclrtSynchronizeStreamWithTimeout", stream, timeout);
} catch (...) {
  return Caught("aclrtSynchronizeStreamWithTimeout");
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus* status) try {
  constexpr const char* kFunction = "aclrtStreamQuery";
  if (status == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "status"));
  std::shared_ptr<Stream> stream;
  if (const int code = FindStream(kFunction, handle, &stream); code != ACL_SUCCESS) return code;
  const std::uint64_t done = stream->queue->done();
  const bool complete = done >= stream->queue->pushed();
  if (!complete) stream->queue->Hurry();
  *status = complete ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtStreamQuery");
}

aclError aclrtStreamGetId(aclrtStream handle, int32_t* streamId) try {
  constexpr const char* kFunction = "aclrtStreamGetId";
  if (streamId == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "streamId"));
  std::shared_ptr<Stream> stream;
  if (const int code = FindStream(kFunction, handle, &stream); code != ACL_SUCCESS) return code;
  *streamId = stream->id;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtStreamGetId");
}

}  // extern "C"
