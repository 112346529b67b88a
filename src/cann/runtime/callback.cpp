// SPDX-License-Identifier: Apache-2.0
// Functions of the program as tasks of a stream. They run on the stream's own thread, never on one
// that happens to wait for it, and hold up what is queued behind them.
#include <memory>
#include <utility>

#include "acl/acl.h"
#include "cann/runtime/enum_value.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"
#include "cann/runtime/wait.hpp"

namespace moeperm::cann {
namespace {

int Launch(const char* function, void (*callback)(void*), void* argument, aclrtStream handle) {
  if (callback == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "fn"));
  std::shared_ptr<Stream> stream;
  if (const int code = FindStream(function, handle, &stream); code != ACL_SUCCESS) return code;
  Queue::Task task;
  task.worker_only = true;
  task.work = [callback, argument] {
    callback(argument);
    return Status();
  };
  return Push(function, *stream, std::move(task));
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) try {
  constexpr const char* kFunction = "aclrtLaunchCallback";
  if (fn == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "fn"));
  if (const std::int64_t block = EnumValue(blockType);
      block != ACL_CALLBACK_NO_BLOCK && block != ACL_CALLBACK_BLOCK) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::BadValue(kFunction, "blockType", block, "0 or 1"));
  }
  return Launch(kFunction, fn, userData, stream);
} catch (...) {
  return Caught("aclrtLaunchCallback");
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) try {
  return Launch("aclrtLaunchHostFunc", fn, args, stream);
} catch (...) {
  return Caught("aclrtLaunchHostFunc");
}

}  // extern "C"
