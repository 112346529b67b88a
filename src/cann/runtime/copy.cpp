// SPDX-License-Identifier: Apache-2.0
// Copies and sets. The order of the checks is part of the interface. A host range is never checked,
// programs do read past theirs; a range that runs over the end of a device allocation is refused
// with 107000, for it would write into another's memory.
#include <cstring>
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

int Inside(const char* function, const char* argument, const void* address, std::size_t count) {
  const Allocation block = FindAllocation(address);
  if (block.start == nullptr || block.device == kHost) return ACL_SUCCESS;
  const std::size_t left =
      block.bytes - static_cast<std::size_t>(static_cast<const char*>(address) -
                                             static_cast<const char*>(block.start));
  if (count <= left) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, msg::Outside(function, argument, address, count, left));
}

bool Pageable(const void* address) { return FindAllocation(address).start == nullptr; }

// Queues `work` and, where it touches memory that the program may reuse as soon as the call
// returns, waits for it.
int Queued(const char* function, aclrtStream handle, bool wait, std::function<Status()> work) {
  std::shared_ptr<Stream> stream;
  if (const int code = FindStream(function, handle, &stream); code != ACL_SUCCESS) return code;
  if (wait && stream->queue->InTask()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::InOwnTask(function));
  }
  Queue::Task task;
  task.work = std::move(work);
  const std::uint64_t position = stream->queue->Push(std::move(task));
  if (position == 0) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, msg::NotLive(function, "stream", handle, "stream"));
  }
  if (wait) stream->queue->Run(position);
  return ACL_SUCCESS;
}

// The checks that both kinds of copy begin with. `*nothing`: the call is over, with success.
int CheckCopy(const char* function, void* dst, std::size_t dest_max, const void* src,
              std::size_t count, std::int64_t kind, bool* nothing) {
  *nothing = count == 0;
  if (*nothing) return ACL_SUCCESS;
  if (dst == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "dst"));
  if (src == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "src"));
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::BadValue(function, "kind", kind, "0 to 5"));
  }
  if (dest_max < count) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                msg::CountAbove(function, "count", count, "destMax", dest_max));
  }
  *nothing = dst == src;
  return ACL_SUCCESS;
}

int CheckRanges(const char* function, const void* dst, const void* src, std::size_t count) {
  if (const int code = Inside(function, "dst", dst, count); code != ACL_SUCCESS) return code;
  return Inside(function, "src", src, count);
}

struct Rectangle {
  void* dst;
  std::size_t dst_pitch;
  const void* src;
  std::size_t src_pitch;
  std::size_t width;
  std::size_t height;
};

int CheckRectangle(const char* function, const Rectangle& rect, std::int64_t kind, bool* nothing) {
  *nothing = rect.width == 0 || rect.height == 0;
  if (*nothing) return ACL_SUCCESS;
  if (rect.dst == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "dst"));
  if (rect.src == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "src"));
  if (rect.width > rect.dst_pitch) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                msg::CountAbove(function, "width", rect.width, "dpitch", rect.dst_pitch));
  }
  if (rect.width > rect.src_pitch) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                msg::CountAbove(function, "width", rect.width, "spitch", rect.src_pitch));
  }
  if (kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > ACL_MEMCPY_DEFAULT) {
    return Fail(ACL_ERROR_INVALID_PARAM, msg::BadValue(function, "kind", kind, "1 to 4"));
  }
  for (const auto& [argument, address, pitch] :
       {std::tuple{"dst", static_cast<const void*>(rect.dst), rect.dst_pitch},
        std::tuple{"src", rect.src, rect.src_pitch}}) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(rect.height - 1, pitch, &bytes) ||
        __builtin_add_overflow(bytes, rect.width, &bytes)) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, msg::Overflow(function, pitch, rect.height));
    }
    if (const int code = Inside(function, argument, address, bytes); code != ACL_SUCCESS) {
      return code;
    }
  }
  return ACL_SUCCESS;
}

void Copy(const Rectangle& rect) {
  for (std::size_t row = 0; row < rect.height; ++row) {
    std::memmove(static_cast<char*>(rect.dst) + row * rect.dst_pitch,
                 static_cast<const char*>(rect.src) + row * rect.src_pitch, rect.width);
  }
}

int CheckSet(const char* function, void* address, std::size_t max_count, std::size_t count,
             bool* nothing) {
  *nothing = count == 0;
  if (*nothing) return ACL_SUCCESS;
  if (address == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, msg::Null(function, "devPtr"));
  if (count > max_count) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                msg::CountAbove(function, "count", count, "maxCount", max_count));
  }
  return Inside(function, "devPtr", address, count);
}

}  // namespace
}  // namespace moeperm::cann

using namespace moeperm::cann;
using moeperm::Status;

extern "C" {

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) try {
  constexpr const char* kFunction = "aclrtMemcpy";
  bool nothing = false;
  const int checked = CheckCopy(kFunction, dst, destMax, src, count, EnumValue(kind), &nothing);
  if (checked != ACL_SUCCESS || nothing) return checked;
  if (CurrentContext() == nullptr) {
    return Fail(ACL_ERROR_RT_CONTEXT_NULL, msg::NoContext(kFunction));
  }
  if (const int code = CheckRanges(kFunction, dst, src, count); code != ACL_SUCCESS) return code;
  std::memmove(dst, src, count);
  return ACL_SUCCESS;
} catch (...) {
  return Caught("aclrtMemcpy");
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) try {
  constexpr const char* kFunction = "aclrtMemcpyAsync";
  bool nothing = false;
  const int checked = CheckCopy(kFunction, dst, destMax, src, count, EnumValue(kind), &nothing);
  if (checked != ACL_SUCCESS || nothing) return checked;
  if (EnumValue(kind) == ACL_MEMCPY_HOST_TO_HOST) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, msg::HostToHost(kFunction));
  }
  if (const int code = CheckRanges(kFunction, dst, src, count); code != ACL_SUCCESS) return code;
  return Queued(kFunction, stream, Pageable(dst) || Pageable(src), [=] {
    std::memmove(dst, src, count);
    return Status();
  });
} catch (...) {
  return Caught("aclrtMemcpyAsync");
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) try {
  const Rectangle rect{dst, dpitch, src, spitch, width, height};
  bool nothing = false;
  const int code = CheckRectangle("aclrtMemcpy2d", rect, EnumValue(kind), &nothing);
  if (code == ACL_SUCCESS && !nothing) Copy(rect);
  return code;
} catch (...) {
  return Caught("aclrtMemcpy2d");
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) try {
  constexpr const char* kFunction = "aclrtMemcpy2dAsync";
  const Rectangle rect{dst, dpitch, src, spitch, width, height};
  bool nothing = false;
  const int code = CheckRectangle(kFunction, rect, EnumValue(kind), &nothing);
  if (code != ACL_SUCCESS || nothing) return code;
  return Queued(kFunction, stream, Pageable(dst) || Pageable(src), [rect] {
    Copy(rect);
    return Status();
  });
} catch (...) {
  return Caught("aclrtMemcpy2dAsync");
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) try {
  bool nothing = false;
  const int code = CheckSet("aclrtMemset", devPtr, maxCount, count, &nothing);
  if (code == ACL_SUCCESS && !nothing) std::memset(devPtr, value, count);
  return code;
} catch (...) {
  return Caught("aclrtMemset");
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) try {
  constexpr const char* kFunction = "aclrtMemsetAsync";
  bool nothing = false;
  const int code = CheckSet(kFunction, devPtr, maxCount, count, &nothing);
  if (code != ACL_SUCCESS || nothing) return code;
  return Queued(kFunction, stream, false, [=] {
    std::memset(devPtr, value, count);
    return Status();
  });
} catch (...) {
  return Caught("aclrtMemsetAsync");
}

}  // extern "C"
