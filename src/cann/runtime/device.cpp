// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "acl/acl.h"
#include "cann/runtime/allocations.hpp"
#include "cann/runtime/enum_value.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"
#include "cann/runtime/wait.hpp"

namespace moeperm::cann {
namespace {

int BadDevice(const char* function, std::int64_t device) {
  if (IsDevice(device)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID,
              msg::NoDevice(function, device, GetEnvironment().devices));
}

int Reset(const char* function, std::int32_t id, bool force) {
  if (const int code = BadDevice(function, id); code != ACL_SUCCESS) return code;
  if (Queue::InAnyTask()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(function));
  }
  Device& device = *GetState().devices[static_cast<std::size_t>(id)];
  std::shared_ptr<Context> primary;
  {
    const std::lock_guard lock(device.mutex);
    if (device.references == 0) {
      return Fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, msg::ResetWithoutSet(function, id));
    }
    device.references = force ? 0 : device.references - 1;
    if (device.references == 0) primary = std::exchange(device.primary, nullptr);
  }
  if (primary == nullptr) return ACL_SUCCESS;
  const Status failure = CloseContext(*primary, force ? Queue::Rest::kDiscard : Queue::Rest::kRun);
  ReleaseFreed();
  return force ? static_cast<int>(ACL_SUCCESS) : ExecutionError(function, failure);
}

// Every stream of the current context's device. All are waited for, whatever fails.
int Synchronize(const char* function, std::int32_t milliseconds) {
  const Timeout timeout(milliseconds, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  if (const int code = BadTimeout(function, milliseconds); code != ACL_SUCCESS) return code;
  const int device = CurrentOrDefaultContext()->device;
  int result = ACL_SUCCESS;
  for (const std::shared_ptr<Stream>& stream : GetState().streams.All()) {
    if (stream->device != device) continue;
    const int code = WaitFor(function, *stream->queue, stream->queue->pushed(), timeout);
    if (result == ACL_SUCCESS) result = code;
  }
  return result;
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtSetDevice(int32_t deviceId) try {
  if (const int code = BadDevice("aclrtSetDevice", deviceId); code != ACL_SUCCESS) return code;
  Device& device = *GetState().devices[static_cast<std::size_t>(deviceId)];
  const std::lock_guard lock(device.mutex);
  if (device.primary == nullptr) device.primary = MakeContext(deviceId, true);
  ++device.references;
  SetCurrent(*device.primary);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtSetDevice");
}

aclError aclrtResetDevice(int32_t deviceId) try {
  return Reset("aclrtResetDevice", deviceId, false);
} catch (...) {
  return Caught("aclrtResetDevice");
}

aclError aclrtResetDeviceForce(int32_t deviceId) try {
  return Reset("aclrtResetDeviceForce", deviceId, true);
} catch (...) {
  return Caught("aclrtResetDeviceForce");
}

aclError aclrtGetDevice(int32_t* deviceId) try {
  constexpr const char* kFunction = "aclrtGetDevice";
  if (deviceId == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "deviceId"));
  const std::shared_ptr<Context> context = CurrentContext();
  if (context == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(kFunction));
  *deviceId = context->device;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetDevice");
}

aclError aclrtGetDeviceCount(uint32_t* count) try {
  if (count == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null("aclrtGetDeviceCount", "count"));
  }
  *count = static_cast<uint32_t>(GetEnvironment().devices);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetDeviceCount");
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) try {
  if (runMode == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null("aclrtGetRunMode", "runMode"));
  }
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetRunMode");
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) try {
  constexpr const char* kFunction = "aclrtQueryDeviceStatus";
  if (deviceStatus == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "deviceStatus"));
  }
  if (const int code = BadDevice(kFunction, deviceId); code != ACL_SUCCESS) return code;
  *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtQueryDeviceStatus");
}

aclError aclrtSynchronizeDevice() try {
  return Synchronize("aclrtSynchronizeDevice", -1);
} catch (...) {
  return Caught("aclrtSynchronizeDevice");
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) try {
  return Synchronize("aclrtSynchronizeDeviceWithTimeout", timeout);
} catch (...) {
  return Caught("aclrtSynchronizeDeviceWithTimeout");
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) try {
  constexpr const char* kFunction = "aclGetDeviceCapability";
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "value"));
  if (const int code = BadDevice(kFunction, deviceId); code != ACL_SUCCESS) return code;
  const host::Soc* const soc = GetEnvironment().soc;
  if (soc == nullptr) return Fail(ACL_ERROR_FAILURE, GetEnvironment().problem);
  switch (EnumValue(deviceInfo)) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      *value = soc->ai_cores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = soc->vector_cores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = soc->l2_bytes;
      return ACL_SUCCESS;
    default:
      return Fail(ACL_ERROR_INVALID_PARAM,
                  msg::BadValue(kFunction, "deviceInfo", EnumValue(deviceInfo), "0 to 2"));
  }
} catch (...) {
  return Caught("aclGetDeviceCapability");
}

}  // extern "C"
