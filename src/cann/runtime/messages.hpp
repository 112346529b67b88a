// SPDX-License-Identifier: Apache-2.0
// Every error text of the runtime: the function, the argument, its value. A text that there is no
// memory for is empty; none of these throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace moeperm::cann::msg {

using Function = std::string_view;

// Arguments.
std::string Null(Function function, std::string_view argument) noexcept;
std::string Zero(Function function, std::string_view argument) noexcept;
std::string BadValue(Function function, std::string_view argument, std::int64_t value,
                     std::string_view allowed) noexcept;
std::string NoDevice(Function function, std::int64_t device, int count) noexcept;
std::string NoContext(Function function) noexcept;
std::string NotLive(Function function, std::string_view argument, const void* handle,
                    std::string_view what) noexcept;
std::string OtherContext(Function function, const void* stream) noexcept;
std::string PrimaryContext(Function function, const void* context) noexcept;
std::string InOwnTask(Function function) noexcept;
std::string NotSet(Function function, std::int64_t option) noexcept;

// Devices.
std::string ResetWithoutSet(Function function, std::int32_t device) noexcept;

// Waiting.
std::string TimedOut(Function function, std::int32_t timeout) noexcept;
std::string Execution(Function function, std::string_view cause) noexcept;

// Events.
std::string NeverRecorded(Function function, std::string_view argument) noexcept;
std::string NotReached(Function function, std::string_view argument) noexcept;
std::string NoTimes(Function function, std::string_view argument) noexcept;
std::string EndBeforeStart(Function function) noexcept;
std::string NoResets(Function function) noexcept;

// Memory.
std::string OutOfMemory(Function function) noexcept;
std::string NoMemory(Function function, std::size_t size, std::size_t free) noexcept;
std::string CountAbove(Function function, std::string_view count_name, std::size_t count,
                       std::string_view limit_name, std::size_t limit) noexcept;
std::string Overflow(Function function, std::size_t pitch, std::size_t height) noexcept;
std::string Outside(Function function, std::string_view argument, const void* address,
                    std::size_t count, std::size_t left) noexcept;
std::string HostToHost(Function function) noexcept;

// Starting and ending.
std::string Repeated(Function function, std::uint64_t count) noexcept;
std::string NotInitialised(Function function) noexcept;
std::string BadFile(Function function, std::string_view path, std::string_view why) noexcept;
std::string ConfigDiffers(Function function) noexcept;
std::string UnknownPackage(Function function, std::string_view name) noexcept;
std::string BadSoc(std::string_view name, std::string_view known) noexcept;
std::string BadDeviceCount(std::string_view value, int limit) noexcept;

// Failures.
std::string Internal(Function function, std::string_view what) noexcept;
std::string Unsupported(Function function) noexcept;

}  // namespace moeperm::cann::msg
