// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/state.hpp"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "acl/acl.h"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/stream.hpp"

namespace moeperm::cann {
namespace {

constexpr std::string_view kDefaultSoc = "Ascend910B2";
constexpr int kMaxDevices = 1024;

// A handle and not a pointer: handles are never used twice, so one that outlived its context finds
// nothing, and a plain variable serves until the very end of a thread.
thread_local void* current_context = nullptr;

Environment ReadEnvironment() {
  Environment environment;
  const char* const given = std::getenv("MOEPERM_SOC");
  const std::string_view name = given != nullptr ? given : kDefaultSoc;
  environment.soc = host::FindSoc(name);
  if (environment.soc == nullptr) {
    std::string known;
    for (const host::Soc& soc : host::Socs())
      known.append(known.empty() ? "" : ", ").append(soc.name);
    environment.problem = msg::BadSoc(name, known);
  } else {
    environment.platform = host::PlatformOf(*environment.soc);
  }
  if (const char* const text = std::getenv("MOEPERM_DEVICES"); text != nullptr) {
    const std::string_view value = text;
    int count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error == std::errc() && end == value.data() + value.size() && count >= 1 &&
        count <= kMaxDevices) {
      environment.devices = count;
    } else {
      environment.problem = msg::BadDeviceCount(value, kMaxDevices);
    }
  }
  return environment;
}

}  // namespace

const Environment& GetEnvironment() {
  static const Environment* const environment = new Environment(ReadEnvironment());
  return *environment;
}

State::State() {
  for (int i = 0; i < GetEnvironment().devices; ++i) devices.push_back(std::make_unique<Device>());
}

State& GetState() {
  static State* const state = new State;
  return *state;
}

bool IsDevice(std::int64_t device) { return device >= 0 && device < GetEnvironment().devices; }

std::shared_ptr<Context> CurrentContext() {
  return current_context == nullptr ? nullptr : GetState().contexts.Find(current_context);
}

void SetCurrent(const Context& context) { current_context = context.handle; }

std::shared_ptr<Context> CurrentOrDefaultContext() {
  std::shared_ptr<Context> context = CurrentContext();
  return context != nullptr ? context : PrimaryContext(0);
}

std::shared_ptr<Stream> MakeStream(Context& context) {
  static std::atomic<std::int32_t> next_id = 0;
  auto stream = std::make_shared<Stream>();
  stream->context = context.handle;
  stream->device = context.device;
  stream->id = next_id.fetch_add(1, std::memory_order_relaxed);
  stream->queue = Queue::Make();
  const std::lock_guard lock(context.mutex);
  if (context.closed) return nullptr;
  context.streams.reserve(context.streams.size() + 1);
  stream->handle = NewHandle();
  GetState().streams.Add(stream->handle, stream);
  context.streams.push_back(stream->handle);
  return stream;
}

std::shared_ptr<Context> MakeContext(int device, bool primary) {
  auto context = std::make_shared<Context>();
  context->device = device;
  context->primary = primary;
  context->handle = NewHandle();
  context->default_stream = MakeStream(*context);
  GetState().contexts.Add(context->handle, context);
  return context;
}

std::shared_ptr<Context> PrimaryContext(int device) {
  Device& its = *GetState().devices[static_cast<std::size_t>(device)];
  const std::lock_guard lock(its.mutex);
  if (its.primary == nullptr) its.primary = MakeContext(device, true);
  return its.primary;
}

Status CloseContext(Context& context, Queue::Rest rest) {
  GetState().contexts.Take(context.handle);
  std::vector<void*> handles;
  {
    const std::lock_guard lock(context.mutex);
    context.closed = true;
    handles.swap(context.streams);
  }
  Status failure;
  for (void* const handle : handles) {
    const std::shared_ptr<Stream> stream = GetState().streams.Take(handle);
    if (stream == nullptr) continue;  // destroyed before
    stream->queue->Close(rest);
    Status status = stream->queue->TakeError(stream->queue->pushed());
    if (failure.ok()) failure = std::move(status);
  }
  return failure;
}

int FindStream(const char* function, const void* handle, std::shared_ptr<Stream>* stream) {
  if (handle == nullptr) {
    *stream = CurrentOrDefaultContext()->default_stream;
    return ACL_SUCCESS;
  }
  *stream = GetState().streams.Find(handle);
  if (*stream == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(function, "stream", handle, "stream"));
  }
  const std::shared_ptr<Context> current = CurrentContext();
  if (current != nullptr && current->handle != (*stream)->context) {
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT, msg::OtherContext(function, handle));
  }
  return ACL_SUCCESS;
}

void CloseAll() {
  State& state = GetState();
  for (const std::unique_ptr<Device>& device : state.devices) {
    const std::lock_guard lock(device->mutex);
    device->references = 0;
    device->primary = nullptr;
  }
  for (const std::shared_ptr<Context>& context : state.contexts.All()) {
    (void)CloseContext(*context, Queue::Rest::kDiscard);
  }
  state.events.TakeAll();
}

int ExecutionError(const char* function, const Status& status) {
  if (status.ok()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, msg::Execution(function, status.message()));
}

const host::Platform& CurrentPlatform() noexcept { return GetEnvironment().platform; }

}  // namespace moeperm::cann
