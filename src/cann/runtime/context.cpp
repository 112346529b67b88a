// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "acl/acl.h"
#include "cann/runtime/allocations.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"

using namespace moeperm::cann;

extern "C" {

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) try {
  constexpr const char* kFunction = "aclrtCreateContext";
  if (context == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "context"));
  if (!IsDevice(deviceId)) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID,
                msg::NoDevice(kFunction, deviceId, GetEnvironment().devices));
  }
  const std::shared_ptr<Context> made = MakeContext(deviceId, false);
  SetCurrent(*made);
  *context = made->handle;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtCreateContext");
}

// What its streams hold is run first.
aclError aclrtDestroyContext(aclrtContext handle) try {
  constexpr const char* kFunction = "aclrtDestroyContext";
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "context"));
  const std::shared_ptr<Context> context = GetState().contexts.Find(handle);
  if (context == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(kFunction, "context", handle, "context"));
  }
  if (context->primary) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, msg::PrimaryContext(kFunction, handle));
  }
  if (Queue::InAnyTask()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(kFunction));
  }
  if (GetState().contexts.Take(handle) == nullptr) {  // another thread was faster
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(kFunction, "context", handle, "context"));
  }
  const moeperm::Status failure = CloseContext(*context, Queue::Rest::kRun);
  ReleaseFreed();
  return ExecutionError(kFunction, failure);
} catch (...) {
  return Caught("aclrtDestroyContext");
}

aclError aclrtSetCurrentContext(aclrtContext handle) try {
  constexpr const char* kFunction = "aclrtSetCurrentContext";
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "context"));
  const std::shared_ptr<Context> context = GetState().contexts.Find(handle);
  if (context == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(kFunction, "context", handle, "context"));
  }
  SetCurrent(*context);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtSetCurrentContext");
}

aclError aclrtGetCurrentContext(aclrtContext* context) try {
  constexpr const char* kFunction = "aclrtGetCurrentContext";
  if (context == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "context"));
  const std::shared_ptr<Context> current = CurrentContext();
  if (current == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(kFunction));
  *context = current->handle;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetCurrentContext");
}

}  // extern "C"
