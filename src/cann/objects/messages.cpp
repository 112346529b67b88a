// SPDX-License-Identifier: Apache-2.0
#include "cann/objects/messages.hpp"

#include <fmt/format.h>

#include "aclnn/opdev/op_errno.h"
#include "cann/runtime/error.hpp"

namespace moeperm::cann::object_msg {
namespace {

// Running out of memory must not throw across the interface: the code counts more than the text.
template <class... Args>
int Text(int code, fmt::format_string<Args...> text, Args&&... args) noexcept {
  try {
    return Fail(code, fmt::format(text, std::forward<Args>(args)...));
  } catch (...) {
    return code;
  }
}

}  // namespace

int NullArgument(std::string_view function, std::string_view argument) {
  return NullArgument(function, argument, ACLNN_ERR_PARAM_NULLPTR);
}
int NullArgument(std::string_view function, std::string_view argument, int code) {
  return Text(code, "{}: {} is a null pointer", function, argument);
}
int NotLive(std::string_view function, std::string_view argument, std::string_view what,
            const void* handle, int code) {
  return Text(code, "{}: {} = {} is no live {}", function, argument, handle, what);
}
int IndexOutOfList(std::string_view function, std::uint64_t index, std::uint64_t size) {
  return Text(ACLNN_ERR_PARAM_INVALID, "{}: relativeIndex is {} but the list has {} tensor(s)",
              function, index, size);
}
int NotOffered(std::string_view function) {
  return Text(200001, "{} is not offered", function);  // ACL_ERROR_API_NOT_SUPPORT
}
int CannotCreate(std::string_view what, std::string_view why) {
  return Text(ACLNN_ERR_PARAM_INVALID, "no {} was made: {}", what, why);
}

int ExecutorConsumed(std::string_view function, const void* handle) {
  return Text(ACLNN_ERR_INNER,
              "{}: executor = {} is no live executor; one that is not repeatable runs once",
              function, handle);
}
int NullWorkspace(std::string_view function, std::uint64_t bytes) {
  return Text(ACLNN_ERR_PARAM_NULLPTR, "{}: workspaceSize is {} but workspace is a null pointer",
              function, bytes);
}
int WorkspaceTooSmall(std::string_view function, std::uint64_t bytes, std::uint64_t need) {
  return Text(ACLNN_ERR_PARAM_INVALID, "{}: workspaceSize is {} but {} bytes are needed", function,
              bytes, need);
}
int StreamRefused(std::string_view function, int code) {
  return Text(ACLNN_ERR_RUNTIME_ERROR, "{}: the stream took no work (error {})", function, code);
}
int Refused(std::string_view function, std::string_view why, int code) {
  return Text(code, "{}: {}", function, why);
}
int OutOfMemory(std::string_view function) {
  return Text(ACLNN_ERR_INNER, "{}: out of memory", function);
}

}  // namespace moeperm::cann::object_msg
