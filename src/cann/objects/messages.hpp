// SPDX-License-Identifier: Apache-2.0
// The texts of this part's errors. Each function notes the text for aclGetRecentErrMsg and returns
// the code of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace moeperm::cann::object_msg {

// 161001, or `code` where the surface says another.
int NullArgument(std::string_view function, std::string_view argument);
int NullArgument(std::string_view function, std::string_view argument, int code);
// A handle that is none, or no longer one, of a live `what`.
int NotLive(std::string_view function, std::string_view argument, std::string_view what,
            const void* handle, int code);
int IndexOutOfList(std::string_view function, std::uint64_t index, std::uint64_t size);
int NotOffered(std::string_view function);
int CannotCreate(std::string_view what, std::string_view why);

// Phase 2.
int ExecutorConsumed(std::string_view function, const void* handle);
int NullWorkspace(std::string_view function, std::uint64_t bytes);
int WorkspaceTooSmall(std::string_view function, std::uint64_t bytes, std::uint64_t need);
int StreamRefused(std::string_view function, int code);
int Refused(std::string_view function, std::string_view why, int code);
int OutOfMemory(std::string_view function);

}  // namespace moeperm::cann::object_msg
