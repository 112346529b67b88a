// SPDX-License-Identifier: Apache-2.0
#include "cann/runtime/messages.hpp"

#include <fmt/format.h>

#include <utility>

namespace moeperm::cann::msg {
namespace {

template <class... Args>
std::string Text(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    return fmt::format(format, std::forward<Args>(args)...);
  } catch (...) {
    return {};
  }
}

}  // namespace

std::string Null(Function function, std::string_view argument) noexcept {
  return Text("{}: {} is null", function, argument);
}

std::string Zero(Function function, std::string_view argument) noexcept {
  return Text("{}: {} is 0", function, argument);
}

std::string BadValue(Function function, std::string_view argument, std::int64_t value,
                     std::string_view allowed) noexcept {
  return Text("{}: {} is {}, which must be {}", function, argument, value, allowed);
}

std::string NoDevice(Function function, std::int64_t device, int count) noexcept {
  return Text("{}: device {}, but there are {} (0 to {}); MOEPERM_DEVICES offers more", function,
              device, count, count - 1);
}

std::string NoContext(Function function) noexcept {
  return Text("{}: this thread has no current context; aclrtSetDevice gives it one", function);
}

std::string NotLive(Function function, std::string_view argument, const void* handle,
                    std::string_view what) noexcept {
  return Text("{}: {} {} is no live {}", function, argument, fmt::ptr(handle), what);
}

std::string OtherContext(Function function, const void* stream) noexcept {
  return Text("{}: stream {} belongs to another context than this thread's current one", function,
              fmt::ptr(stream));
}

std::string PrimaryContext(Function function, const void* context) noexcept {
  return Text("{}: context {} is a device's own; aclrtResetDevice ends it", function,
              fmt::ptr(context));
}

std::string InOwnTask(Function function) noexcept {
  return Text("{}: called by a callback that it would wait for", function);
}

std::string NotSet(Function function, std::int64_t option) noexcept {
  return Text("{}: option {} was never set in this context", function, option);
}

std::string ResetWithoutSet(Function function, std::int32_t device) noexcept {
  return Text("{}: device {} is not set, or was reset as often as it was set", function, device);
}

std::string TimedOut(Function function, std::int32_t timeout) noexcept {
  return Text("{}: not done after {} ms", function, timeout);
}

std::string Execution(Function function, std::string_view cause) noexcept {
  return Text("{}: earlier work of the stream failed: {}", function, cause);
}

std::string NeverRecorded(Function function, std::string_view argument) noexcept {
  return Text("{}: {} was never recorded", function, argument);
}

std::string NotReached(Function function, std::string_view argument) noexcept {
  return Text("{}: the work that {} was recorded behind is not done", function, argument);
}

std::string NoTimes(Function function, std::string_view argument) noexcept {
  return Text("{}: {} was created without ACL_EVENT_TIME_LINE", function, argument);
}

std::string EndBeforeStart(Function function) noexcept {
  return Text("{}: endEvent was reached before startEvent", function);
}

std::string NoResets(Function function) noexcept {
  return Text("{}: the event was created by aclrtCreateEventExWithFlag, which forbids this call",
              function);
}

std::string OutOfMemory(Function function) noexcept {
  return Text("{}: out of memory for the call's own needs", function);
}

std::string NoMemory(Function function, std::size_t size, std::size_t free) noexcept {
  return Text("{}: no memory for {} bytes; {} are free", function, size, free);
}

std::string CountAbove(Function function, std::string_view count_name, std::size_t count,
                       std::string_view limit_name, std::size_t limit) noexcept {
  return Text("{}: {} is {}, above {} = {}", function, count_name, count, limit_name, limit);
}

std::string Overflow(Function function, std::size_t pitch, std::size_t height) noexcept {
  return Text("{}: {} rows of {} bytes are more than can be addressed", function, height, pitch);
}

std::string Outside(Function function, std::string_view argument, const void* address,
                    std::size_t count, std::size_t left) noexcept {
  return Text("{}: {} bytes at {} {}, but its allocation ends after {}", function, count, argument,
              fmt::ptr(address), left);
}

std::string HostToHost(Function function) noexcept {
  return Text("{}: kind ACL_MEMCPY_HOST_TO_HOST is not offered asynchronously", function);
}

std::string Repeated(Function function, std::uint64_t count) noexcept {
  return Text("{}: already initialised; the reference count is now {}", function, count);
}

std::string NotInitialised(Function function) noexcept {
  return Text("{}: already finalised, or not initialised", function);
}

std::string BadFile(Function function, std::string_view path, std::string_view why) noexcept {
  return Text("{}: {}: {}", function, path, why);
}

std::string ConfigDiffers(Function function) noexcept {
  return Text("{}: the configuration differs from that of the process's first initialisation",
              function);
}

std::string UnknownPackage(Function function, std::string_view name) noexcept {
  return Text("{}: there is no package \"{}\"", function, name);
}

std::string BadSoc(std::string_view name, std::string_view known) noexcept {
  return Text("MOEPERM_SOC is \"{}\", which is none of {}", name, known);
}

std::string BadDeviceCount(std::string_view value, int limit) noexcept {
  return Text("MOEPERM_DEVICES is \"{}\", which must be 1 to {}", value, limit);
}

std::string Internal(Function function, std::string_view what) noexcept {
  return Text("{}: internal error: {}", function, what);
}

std::string Unsupported(Function function) noexcept {
  return Text("{} is not offered by this library", function);
}

}  // namespace moeperm::cann::msg
