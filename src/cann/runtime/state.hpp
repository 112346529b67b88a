// SPDX-License-Identifier: Apache-2.0
// What the runtime keeps: devices, contexts, streams and events. It is made at first use and never
// destroyed, so that calls from static destructors and workers at exit find it whole.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cann/host/soc.hpp"
#include "cann/runtime/queue.hpp"
#include "cann/runtime/registry.hpp"

namespace moeperm::cann {

// What MOEPERM_SOC and MOEPERM_DEVICES say; read once.
struct Environment {
  const host::Soc* soc = nullptr;  // null: the name is unknown
  host::Platform platform;         // of the default where it is
  int devices = 1;
  std::string problem;  // why aclInit fails; empty where it does not
};
const Environment& GetEnvironment();

struct Stream {
  void* handle = nullptr;
  void* context = nullptr;
  int device = 0;
  std::int32_t id = 0;
  std::shared_ptr<Queue> queue;
};

struct Context {
  void* handle = nullptr;
  int device = 0;
  bool primary = false;
  std::shared_ptr<Stream> default_stream;

  std::mutex mutex;
  bool closed = false;
  std::vector<void*> streams;  // handles, the default one's too
  std::array<std::optional<std::int64_t>, 3> options;
};

struct Event {
  std::uint32_t flags = 0;
  bool repeats = false;  // created by aclrtCreateEventExWithFlag

  std::mutex mutex;
  std::shared_ptr<Point> point;  // of the last record; null before the first
  std::weak_ptr<Queue> queue;    // where it was recorded
  std::uint64_t position = 0;
  std::shared_ptr<const int> waits = std::make_shared<const int>(0);  // held by each wait queued
};

struct Device {
  std::mutex mutex;
  std::uint64_t references = 0;
  std::shared_ptr<Context> primary;  // null while there is none
};

struct State {
  State();
  std::vector<std::unique_ptr<Device>> devices;
  Registry<Context> contexts;
  Registry<Stream> streams;
  Registry<Event> events;
};
State& GetState();

bool IsDevice(std::int64_t device);

// The thread's current context; null where it has none or that one is gone.
std::shared_ptr<Context> CurrentContext();
void SetCurrent(const Context& context);
// The current context, or the one of device 0, which is made where need be.
std::shared_ptr<Context> CurrentOrDefaultContext();

std::shared_ptr<Context> MakeContext(int device, bool primary);
std::shared_ptr<Context> PrimaryContext(int device);
// Null where the context was closed meanwhile.
std::shared_ptr<Stream> MakeStream(Context& context);

// Ends a context with its streams and forgets them. The first failure that nobody had heard of.
Status CloseContext(Context& context, Queue::Rest rest);

// The stream of `handle` (null: the current context's default one) for a call that queues or
// waits. 107017 where it is not live, 107003 where it is another context's than the thread's.
int FindStream(const char* function, const void* handle, std::shared_ptr<Stream>* stream);

// Everything of all devices, without running what is queued.
void CloseAll();

// 507035 with its text for a failure of earlier work; 0 for none.
int ExecutionError(const char* function, const Status& status);

}  // namespace moeperm::cann
