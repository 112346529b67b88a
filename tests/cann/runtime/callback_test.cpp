// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <thread>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

using Callbacks = WithStream;

void Call(void* function) { (*static_cast<std::function<void()>*>(function))(); }

TEST_F(Callbacks, RunOnAnotherThread) {
  std::thread::id id;
  std::function<void()> note = [&] { id = std::this_thread::get_id(); };
  EXPECT_OK(aclrtLaunchCallback(Call, &note, ACL_CALLBACK_BLOCK, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_NE(id, std::thread::id());
  EXPECT_NE(id, std::this_thread::get_id());
  std::atomic<int> count = 0;
  EXPECT_OK(aclrtLaunchCallback(Add, &count, ACL_CALLBACK_NO_BLOCK, stream_));
  EXPECT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(count, 2);
}

TEST_F(Callbacks, BadArguments) {
  EXPECT_CODE(aclrtLaunchCallback(nullptr, nullptr, ACL_CALLBACK_BLOCK, stream_),
              ACL_ERROR_INVALID_PARAM, "fn");
  EXPECT_CODE(aclrtLaunchHostFunc(stream_, nullptr, nullptr), ACL_ERROR_INVALID_PARAM, "fn");
  for (const int block : {-1, 2}) {
    EXPECT_CODE(
        aclrtLaunchCallback(Add, nullptr, static_cast<aclrtCallbackBlockType>(block), stream_),
        ACL_ERROR_INVALID_PARAM, "blockType");
  }
  EXPECT_CODE(aclrtLaunchCallback(Add, nullptr, ACL_CALLBACK_BLOCK, kForeign),
              ACL_ERROR_RT_INVALID_HANDLE, "no live stream");
}

// A callback that would wait for itself is told so.
TEST_F(Callbacks, WaitingForThemselves) {
  aclrtEvent event = nullptr;
  ASSERT_OK(aclrtCreateEvent(&event));
  aclrtContext context = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&context));
  Gate gate;
  std::function<void()> calls = [&] {
    ASSERT_OK(aclrtSetCurrentContext(context));
    const auto refused = ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    EXPECT_CODE(aclrtSynchronizeStream(stream_), refused, "would wait for");
    EXPECT_CODE(aclrtSynchronizeStreamWithTimeout(stream_, 1), refused, "would wait for");
    EXPECT_CODE(aclrtSynchronizeDevice(), refused, "would wait for");
    EXPECT_CODE(aclrtSynchronizeEvent(event), refused, "would wait for");
    EXPECT_CODE(aclrtDestroyStream(stream_), refused, "would wait for");
    EXPECT_CODE(aclrtDestroyStreamForce(stream_), refused, "would wait for");
    EXPECT_CODE(aclrtResetDevice(0), refused, "would wait for");
    EXPECT_CODE(aclrtResetDeviceForce(0), refused, "would wait for");
    EXPECT_CODE(aclFinalize(), refused, "would wait for");
    EXPECT_CODE(aclFinalizeReference(nullptr), refused, "would wait for");
    char byte = 0;
    void* device = nullptr;
    ASSERT_OK(aclrtMalloc(&device, 1, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_CODE(aclrtMemcpyAsync(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream_), refused,
                "would wait for");
    EXPECT_OK(aclrtMemsetAsync(device, 1, 0, 1, stream_));
    EXPECT_OK(aclrtFree(device));
  };
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Call, &calls));
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Callbacks, QueueAndWaitForOthers) {
  aclrtStream other = nullptr;
  ASSERT_OK(aclrtCreateStream(&other));
  std::atomic<int> count = 0;
  std::function<void()> calls = [&] {
    for (int i = 0; i < 10; ++i) {
      EXPECT_OK(aclrtLaunchHostFunc(other, Add, &count));
      EXPECT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
    }
    EXPECT_OK(aclrtSynchronizeStream(other));
    EXPECT_EQ(count, 10);
  };
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Call, &calls));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));  // for what the callback queued
  EXPECT_EQ(count, 20);
}

}  // namespace
}  // namespace moeperm::cann::testing
