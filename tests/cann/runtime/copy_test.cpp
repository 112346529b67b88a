// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

constexpr std::size_t kBytes = 1000;

class Copies : public WithStream {
 protected:
  void SetUp() override {
    WithStream::SetUp();
    std::iota(host_.begin(), host_.end(), 1);
    ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&device_), kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&other_), kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
  }
  std::vector<unsigned char> host_ = std::vector<unsigned char>(kBytes);
  std::vector<unsigned char> back_ = std::vector<unsigned char>(kBytes);
  unsigned char* device_ = nullptr;
  unsigned char* other_ = nullptr;
  unsigned char* pinned_ = nullptr;
};

TEST_F(Copies, ThereAndBack) {
  EXPECT_OK(aclrtMemcpy(device_, kBytes, host_.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_OK(aclrtMemcpy(other_, kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_OK(aclrtMemcpy(pinned_, kBytes, other_, kBytes, ACL_MEMCPY_DEFAULT));
  EXPECT_OK(aclrtMemcpy(back_.data(), kBytes, pinned_, kBytes, ACL_MEMCPY_HOST_TO_HOST));
  EXPECT_EQ(back_, host_);
}

TEST_F(Copies, Async) {
  EXPECT_OK(
      aclrtMemcpyAsync(device_, kBytes, host_.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_OK(
      aclrtMemcpyAsync(other_, kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  EXPECT_OK(aclrtMemsetAsync(device_, kBytes, 0, kBytes, stream_));
  EXPECT_OK(aclrtMemcpyAsync(pinned_, kBytes, other_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(std::memcmp(pinned_, host_.data(), kBytes), 0);
  EXPECT_EQ(device_[7], 0);
}

// Ordinary memory is the caller's again when the call returns; pinned memory is not.
TEST_F(Copies, AsyncWaitsForOrdinaryMemoryOnly) {
  Gate gate;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  std::memset(pinned_, 1, kBytes);
  EXPECT_OK(aclrtMemcpyAsync(device_, kBytes, pinned_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  std::memset(pinned_, 2, kBytes);
  std::thread opener([&] { gate.Open(); });
  EXPECT_OK(
      aclrtMemcpyAsync(back_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream_));
  EXPECT_EQ(back_[0], 2);
  opener.join();
}

// Both kinds of copy check in this order.
TEST_F(Copies, ChecksInOrder) {
  const auto kind = ACL_MEMCPY_HOST_TO_DEVICE;
  const auto bad = static_cast<aclrtMemcpyKind>(6);
  for (const bool async : {false, true}) {
    const auto copy = [&](void* dst, std::size_t max, const void* src, std::size_t count,
                          aclrtMemcpyKind how) {
      return async ? aclrtMemcpyAsync(dst, max, src, count, how, stream_)
                   : aclrtMemcpy(dst, max, src, count, how);
    };
    EXPECT_OK(copy(nullptr, 0, nullptr, 0, bad));
    EXPECT_CODE(copy(nullptr, 0, host_.data(), 1, bad), ACL_ERROR_INVALID_PARAM, "dst");
    EXPECT_CODE(copy(device_, 0, nullptr, 1, bad), ACL_ERROR_INVALID_PARAM, "src");
    EXPECT_CODE(copy(device_, 0, host_.data(), 1, bad), ACL_ERROR_INVALID_PARAM, "kind is 6");
    EXPECT_EQ(copy(device_, 1, host_.data(), 1, static_cast<aclrtMemcpyKind>(-1)),
              ACL_ERROR_INVALID_PARAM);
    EXPECT_CODE(copy(device_, 9, host_.data(), 10, kind), ACL_ERROR_RT_PARAM_INVALID,
                "destMax = 9");
    EXPECT_CODE(copy(device_, 0, device_, 1, kind), ACL_ERROR_RT_PARAM_INVALID, "count is 1");
    EXPECT_OK(copy(device_, 9, device_, 9, kind));
    EXPECT_OK(copy(device_, 9, host_.data(), 9, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE));
  }
  std::thread([&] {
    EXPECT_CODE(aclrtMemcpy(device_, 9, host_.data(), 10, kind), ACL_ERROR_RT_PARAM_INVALID,
                "count");
    EXPECT_OK(aclrtMemcpy(device_, 9, device_, 9, kind));
    EXPECT_CODE(aclrtMemcpy(device_, 9, host_.data(), 9, kind), ACL_ERROR_RT_CONTEXT_NULL,
                "context");
  }).join();
  EXPECT_CODE(aclrtMemcpyAsync(pinned_, 9, host_.data(), 9, ACL_MEMCPY_HOST_TO_HOST, stream_),
              ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "ACL_MEMCPY_HOST_TO_HOST");
  EXPECT_CODE(aclrtMemcpyAsync(device_, 9, host_.data(), 9, kind, kForeign),
              ACL_ERROR_RT_INVALID_HANDLE, "no live stream");
}

TEST_F(Copies, BeyondADeviceAllocation) {
  const std::size_t whole = 1024 + 32;
  std::vector<unsigned char> large(whole + 1);
  EXPECT_OK(aclrtMemcpy(device_, whole, large.data(), whole, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(aclrtMemcpy(device_, whole + 1, large.data(), whole + 1, ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_ERROR_RT_PARAM_INVALID, "ends after 1056");
  EXPECT_CODE(aclrtMemcpy(large.data(), whole, device_ + 1, whole, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_ERROR_RT_PARAM_INVALID, "src");
  EXPECT_CODE(aclrtMemset(device_, SIZE_MAX, 0, SIZE_MAX), ACL_ERROR_RT_PARAM_INVALID, "devPtr");
  EXPECT_CODE(aclrtMemsetAsync(device_, whole + 1, 0, whole + 1, stream_),
              ACL_ERROR_RT_PARAM_INVALID, "devPtr");
}

TEST_F(Copies, Set) {
  EXPECT_OK(aclrtMemset(device_, kBytes, 0x1FF, kBytes));
  EXPECT_EQ(device_[kBytes - 1], 0xFF);
  EXPECT_OK(aclrtMemsetAsync(device_, kBytes, -2, 10, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(device_[9], 0xFE);
  EXPECT_EQ(device_[10], 0xFF);
  EXPECT_OK(aclrtMemset(nullptr, 0, 0, 0));
  EXPECT_OK(aclrtMemsetAsync(nullptr, 0, 0, 0, stream_));
  EXPECT_CODE(aclrtMemset(nullptr, 1, 0, 1), ACL_ERROR_INVALID_PARAM, "devPtr");
  EXPECT_CODE(aclrtMemsetAsync(nullptr, 1, 0, 1, stream_), ACL_ERROR_INVALID_PARAM, "devPtr");
  EXPECT_CODE(aclrtMemset(device_, 1, 0, 2), ACL_ERROR_RT_PARAM_INVALID, "maxCount = 1");
  EXPECT_CODE(aclrtMemsetAsync(device_, 1, 0, 2, stream_), ACL_ERROR_RT_PARAM_INVALID, "maxCount");
}

TEST_F(Copies, Rectangles) {
  // 3 rows of 5 bytes, 10 apart, come to be 7 apart.
  for (const bool async : {false, true}) {
    ASSERT_OK(aclrtMemset(device_, kBytes, 0, kBytes));
    const auto copy = [&](void* dst, std::size_t dpitch, const void* src, std::size_t spitch,
                          std::size_t width, std::size_t height, aclrtMemcpyKind kind) {
      return async ? aclrtMemcpy2dAsync(dst, dpitch, src, spitch, width, height, kind, stream_)
                   : aclrtMemcpy2d(dst, dpitch, src, spitch, width, height, kind);
    };
    const auto kind = ACL_MEMCPY_HOST_TO_DEVICE;
    EXPECT_OK(copy(device_, 7, host_.data(), 10, 5, 3, kind));
    EXPECT_OK(aclrtSynchronizeStream(stream_));
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(device_[7 * row + i], i < 5 ? host_[10 * row + i] : 0);
      }
    }
    EXPECT_OK(copy(nullptr, 0, nullptr, 0, 0, 3, ACL_MEMCPY_HOST_TO_HOST));
    EXPECT_OK(copy(nullptr, 0, nullptr, 0, 3, 0, ACL_MEMCPY_HOST_TO_HOST));
    EXPECT_CODE(copy(nullptr, 7, host_.data(), 10, 5, 3, kind), ACL_ERROR_INVALID_PARAM, "dst");
    EXPECT_CODE(copy(device_, 7, nullptr, 10, 5, 3, kind), ACL_ERROR_INVALID_PARAM, "src");
    EXPECT_CODE(copy(device_, 4, host_.data(), 10, 5, 3, kind), ACL_ERROR_INVALID_PARAM, "dpitch");
    EXPECT_CODE(copy(device_, 7, host_.data(), 4, 5, 3, kind), ACL_ERROR_INVALID_PARAM, "spitch");
    for (const int other : {-1, 0, 5, 6, 7, 8}) {
      EXPECT_CODE(copy(device_, 7, host_.data(), 10, 5, 3, static_cast<aclrtMemcpyKind>(other)),
                  ACL_ERROR_INVALID_PARAM, "kind");
    }
    EXPECT_CODE(copy(device_, SIZE_MAX, host_.data(), 10, 5, 3, kind), ACL_ERROR_RT_PARAM_INVALID,
                "addressed");
    EXPECT_CODE(copy(device_, 7, host_.data(), 10, 5, SIZE_MAX, kind), ACL_ERROR_RT_PARAM_INVALID,
                "rows");
    EXPECT_CODE(copy(device_, 400, host_.data(), 10, 5, 4, kind), ACL_ERROR_RT_PARAM_INVALID,
                "ends after");
  }
  EXPECT_CODE(aclrtMemcpy2dAsync(device_, 7, host_.data(), 10, 5, 3, ACL_MEMCPY_DEFAULT, kForeign),
              ACL_ERROR_RT_INVALID_HANDLE, "no live stream");
}

}  // namespace
}  // namespace moeperm::cann::testing
