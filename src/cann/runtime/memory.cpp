// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstring>
#include <memory>

#include "acl/acl.h"
#include "cann/runtime/allocations.hpp"
#include "cann/runtime/enum_value.hpp"
#include "cann/runtime/error.hpp"
#include "cann/runtime/messages.hpp"
#include "cann/runtime/state.hpp"

namespace moeperm::cann {
namespace {

// Policies are wishes about page sizes and kinds of memory, and ignored.
int DeviceAllocate(const char* function, void** address, std::size_t size, std::size_t slack) {
  if (address == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, msg::Zero(function, "size"));
  const std::shared_ptr<Context> context = CurrentContext();
  if (context == nullptr) return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(function));
  void* const made = Allocate(size, slack, context->device);
  if (made == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, msg::NoMemory(function, size, FreeBytes()));
  }
  *address = made;
  return ACL_SUCCESS;
}

// What operators may read behind a block's end; ascend950 leaves it out.
std::size_t Slack() {
  const host::Soc* const soc = GetEnvironment().soc;
  return soc != nullptr && soc->family == "ascend950" ? 0 : 32;
}

int FreeBlock(const char* function, const char* argument, void* address, bool of_host) {
  if (address == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, argument));
  if (!Free(address, of_host)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                msg::NotLive(function, argument, address,
                             of_host ? "allocation of the host" : "allocation of a device"));
  }
  return ACL_SUCCESS;
}

// Caches are coherent here.
int CheckRange(const char* function, const void* address, std::size_t size) {
  if (address == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, msg::Zero(function, "size"));
  return ACL_SUCCESS;
}

// Whether there is such memory: none that other devices see directly, and no pages of 1 GB.
bool HasMemory(std::int64_t attr) {
  switch (attr) {
    case ACL_DDR_MEM:
    case ACL_HBM_MEM:
    case ACL_DDR_MEM_HUGE:
    case ACL_DDR_MEM_NORMAL:
    case ACL_HBM_MEM_HUGE:
    case ACL_HBM_MEM_NORMAL:
    case ACL_MEM_NORMAL:
    case ACL_MEM_HUGE:
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;

extern "C" {

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return DeviceAllocate("aclrtMalloc", devPtr, size, Slack());
} catch (...) {
  return Caught("aclrtMalloc");
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return DeviceAllocate("aclrtMallocAlign32", devPtr, size, 0);
} catch (...) {
  return Caught("aclrtMallocAlign32");
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) try {
  return DeviceAllocate("aclrtMallocCached", devPtr, size, Slack());
} catch (...) {
  return Caught("aclrtMallocCached");
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy,
                            aclrtMallocConfig* cfg) try {
  constexpr const char* kFunction = "aclrtMallocWithCfg";
  if (cfg != nullptr && cfg->numAttrs > 0 && cfg->attrs == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "cfg->attrs"));
  }
  return DeviceAllocate(kFunction, devPtr, size, Slack());
} catch (...) {
  return Caught("aclrtMallocWithCfg");
}

aclError aclrtMemFlush(void* devPtr, size_t size) {
  return CheckRange("aclrtMemFlush", devPtr, size);
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  return CheckRange("aclrtMemInvalidate", devPtr, size);
}

aclError aclrtFree(void* devPtr) try {
  return FreeBlock("aclrtFree", "devPtr", devPtr, false);
} catch (...) {
  return Caught("aclrtFree");
}

aclError aclrtMallocHost(void** hostPtr, size_t size) try {
  constexpr const char* kFunction = "aclrtMallocHost";
  if (hostPtr == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "hostPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, msg::Zero(kFunction, "size"));
  void* const made = Allocate(size, 0, kHost);
  if (made == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, msg::NoMemory(kFunction, size, FreeBytes()));
  }
  *hostPtr = made;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtMallocHost");
}

aclError aclrtFreeHost(void* hostPtr) try {
  return FreeBlock("aclrtFreeHost", "hostPtr", hostPtr, true);
} catch (...) {
  return Caught("aclrtFreeHost");
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) try {
  constexpr const char* kFunction = "aclrtGetMemInfo";
  if (free == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "free"));
  if (total == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "total"));
  const std::int64_t kind = EnumValue(attr);
  if (kind < ACL_DDR_MEM || kind > ACL_MEM_P2P_HUGE1G) {
    return Fail(ACL_ERROR_RT_INVALID_MEMORY_TYPE,
                msg::BadValue(kFunction, "attr", kind, "0 to 17"));
  }
  if (CurrentContext() == nullptr) {
    return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(kFunction));
  }
  *free = HasMemory(kind) ? FreeBytes() : 0;
  *total = HasMemory(kind) ? TotalMemory() : 0;
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtGetMemInfo");
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) try {
  constexpr const char* kFunction = "aclrtPointerGetAttributes";
  if (ptr == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "ptr"));
  if (attributes == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(kFunction, "attributes"));
  }
  std::memset(attributes, 0, sizeof *attributes);
  attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  const Allocation found = FindAllocation(ptr);
  if (found.start == nullptr) return ACL_SUCCESS;
  attributes->pageSize = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  if (found.device == kHost) {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
  } else {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attributes->location.id = static_cast<uint32_t>(found.device);
  }
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtPointerGetAttributes");
}

}  // extern "C"
