// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <thread>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

TEST(Device, SetGetReset) {
  std::int32_t device = -1;
  EXPECT_CODE(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice");
  EXPECT_CODE(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "device 0 is not set");
  EXPECT_OK(aclrtSetDevice(0));
  EXPECT_OK(aclrtSetDevice(0));
  EXPECT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_OK(aclrtResetDevice(0));
  EXPECT_OK(aclrtGetDevice(&device));
  EXPECT_OK(aclrtResetDevice(0));
  EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

TEST(Device, OutOfRange) {
  for (const std::int32_t device : {-1, 1, 64, INT32_MAX, INT32_MIN}) {
    EXPECT_CODE(aclrtSetDevice(device), ACL_ERROR_RT_INVALID_DEVICEID, "MOEPERM_DEVICES");
    EXPECT_EQ(aclrtResetDevice(device), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(aclrtResetDeviceForce(device), ACL_ERROR_RT_INVALID_DEVICEID);
    aclrtContext context = nullptr;
    EXPECT_EQ(aclrtCreateContext(&context, device), ACL_ERROR_RT_INVALID_DEVICEID);
    aclrtDeviceStatus status;
    EXPECT_EQ(aclrtQueryDeviceStatus(device, &status), ACL_ERROR_RT_INVALID_DEVICEID);
    std::int64_t value = 0;
    EXPECT_EQ(aclGetDeviceCapability(static_cast<std::uint32_t>(device),
                                     ACL_DEVICE_INFO_AI_CORE_NUM, &value),
              ACL_ERROR_RT_INVALID_DEVICEID);
  }
}

// In a process of its own.
TEST(Device, Several) {
  setenv("MOEPERM_DEVICES", "3", 1);
  std::uint32_t count = 0;
  EXPECT_OK(aclrtGetDeviceCount(&count));
  EXPECT_EQ(count, 3U);
  EXPECT_OK(aclrtSetDevice(2));
  std::thread([] {
    std::int32_t device = -1;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_OK(aclrtSetDevice(1));
    EXPECT_OK(aclrtGetDevice(&device));
    EXPECT_EQ(device, 1);
  }).join();
  std::int32_t device = -1;
  EXPECT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 2);
  EXPECT_EQ(aclrtSetDevice(3), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_OK(aclrtResetDevice(1));
  EXPECT_OK(aclrtResetDevice(2));
}

TEST(Device, Nulls) {
  EXPECT_CODE(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM, "deviceId");
  EXPECT_CODE(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM, "count");
  EXPECT_CODE(aclrtGetRunMode(nullptr), ACL_ERROR_INVALID_PARAM, "runMode");
  EXPECT_CODE(aclrtQueryDeviceStatus(0, nullptr), ACL_ERROR_INVALID_PARAM, "deviceStatus");
  EXPECT_CODE(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr), ACL_ERROR_INVALID_PARAM,
              "value");
}

TEST(Device, WhatItIs) {
  std::uint32_t count = 0;
  EXPECT_OK(aclrtGetDeviceCount(&count));
  EXPECT_EQ(count, 1U);
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_OK(aclrtGetRunMode(&mode));
  EXPECT_EQ(mode, ACL_HOST);
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  EXPECT_OK(aclrtQueryDeviceStatus(0, &status));
  EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
  ASSERT_NE(aclrtGetSocName(), nullptr);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B2");
  std::int64_t vector_cores = 0;
  std::int64_t ai_cores = 0;
  std::int64_t l2 = 0;
  EXPECT_OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &vector_cores));
  EXPECT_OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &ai_cores));
  EXPECT_OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, &l2));
  EXPECT_EQ(vector_cores, 2 * ai_cores);
  EXPECT_GT(l2, 0);
  EXPECT_CODE(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &l2), ACL_ERROR_INVALID_PARAM,
              "deviceInfo is -1");
  EXPECT_EQ(aclGetDeviceCapability(0, static_cast<aclDeviceInfo>(3), &l2), ACL_ERROR_INVALID_PARAM);
}

// In a process of its own.
TEST(Device, OtherSoc) {
  setenv("MOEPERM_SOC", "Ascend910_9391", 1);
  ASSERT_OK(aclInit(nullptr));
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910_9391");
  std::int64_t cores = 0;
  EXPECT_OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &cores));
  EXPECT_EQ(cores, 50);
  EXPECT_OK(aclFinalize());
}

TEST_F(WithStream, ResetRunsWhatIsQueuedAndReleases) {
  std::atomic<int> count = 0;
  for (int i = 0; i < 100; ++i) ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  ASSERT_OK(aclrtLaunchHostFunc(nullptr, Add, &count));
  EXPECT_OK(aclrtResetDevice(0));
  EXPECT_EQ(count, 101);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(WithStream, ForcedResetThrowsAwayWhatIsQueued) {
  ASSERT_OK(aclrtSetDevice(0));
  Gate gate;
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  gate.WaitUntilEntered();
  std::thread opener([&] { gate.Open(); });
  EXPECT_OK(aclrtResetDeviceForce(0));
  opener.join();
  EXPECT_LE(count, 1);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
}

TEST_F(WithStream, ResetHandsOutFailures) {
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Throw, nullptr));
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_THAT(TakeText(), HasSubstr("thrown by a callback"));
}

TEST_F(WithStream, SynchronizeDeviceWaitsForAllStreams) {
  aclrtStream other = nullptr;
  ASSERT_OK(aclrtCreateStream(&other));
  std::atomic<int> count = 0;
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
    ASSERT_OK(aclrtLaunchHostFunc(other, Add, &count));
    ASSERT_OK(aclrtLaunchHostFunc(nullptr, Add, &count));
  }
  EXPECT_OK(aclrtSynchronizeDevice());
  EXPECT_EQ(count, 150);
  ASSERT_OK(aclrtLaunchHostFunc(other, Throw, nullptr));
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(WithStream, SynchronizeDeviceWithTimeout) {
  Gate gate;
  EXPECT_OK(aclrtSynchronizeDeviceWithTimeout(0));
  EXPECT_OK(aclrtSynchronizeDeviceWithTimeout(-1));
  EXPECT_CODE(aclrtSynchronizeDeviceWithTimeout(-2), ACL_ERROR_RT_PARAM_INVALID, "timeout is -2");
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  EXPECT_CODE(aclrtSynchronizeDeviceWithTimeout(5), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "5 ms");
  gate.Open();
  EXPECT_OK(aclrtSynchronizeDeviceWithTimeout(60000));
}

TEST(Device, WorksUnset) {
  std::atomic<int> count = 0;
  EXPECT_OK(aclrtLaunchHostFunc(nullptr, Add, &count));
  EXPECT_OK(aclrtSynchronizeStream(nullptr));
  EXPECT_EQ(count, 1);
  EXPECT_OK(aclrtSynchronizeDevice());
  EXPECT_OK(aclFinalize());
}

}  // namespace
}  // namespace moeperm::cann::testing
