// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>
#include <vector>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

using Streams = WithStream;

TEST_F(Streams, RunInOrder) {
  struct Step {
    std::vector<int>* order;
    int number;
    static void Take(void* self) {
      auto* const step = static_cast<Step*>(self);
      step->order->push_back(step->number);
    }
  };
  std::vector<int> order;
  std::vector<Step> steps;
  for (int i = 0; i < 1000; ++i) steps.push_back({&order, i});
  for (Step& step : steps) ASSERT_OK(aclrtLaunchHostFunc(stream_, Step::Take, &step));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_EQ(order.size(), steps.size());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

// Work begins without anybody waiting for it, also where the program always waited before.
TEST_F(Streams, RunUnasked) {
  std::vector<char> memory(64);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(aclrtMemsetAsync(memory.data(), 64, i, 64, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  const auto start = std::chrono::steady_clock::now();
  while (count == 0) {
    ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    std::this_thread::yield();
  }
}

TEST_F(Streams, Query) {
  Gate gate;
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  EXPECT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  EXPECT_OK(aclrtStreamQuery(nullptr, &status));
  EXPECT_CODE(aclrtStreamQuery(stream_, nullptr), ACL_ERROR_INVALID_PARAM, "status");
}

TEST_F(Streams, Timeouts) {
  Gate gate;
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, 0));
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, -1));
  EXPECT_CODE(aclrtSynchronizeStreamWithTimeout(stream_, -2), ACL_ERROR_RT_PARAM_INVALID,
              "timeout is -2");
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  EXPECT_CODE(aclrtSynchronizeStreamWithTimeout(stream_, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
              "0 ms");
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, 60000));
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, INT32_MAX));
  EXPECT_EQ(count, 1);
}

TEST_F(Streams, FailuresAreToldOnceAndTheStreamGoesOn) {
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Throw, nullptr));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  TakeText();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_THAT(TakeText(), HasSubstr("aclrtSynchronizeStream: earlier work of the stream failed: "
                                    "thrown by a callback"));
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(count, 1);
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Throw, nullptr));
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 60000), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Streams, FailuresThatNobodyHeardOfAreToldByDestroy) {
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Throw, nullptr));
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(Streams, DestroyWaits) {
  std::atomic<int> count = 0;
  for (int i = 0; i < 100; ++i) ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  EXPECT_OK(aclrtDestroyStream(stream_));
  EXPECT_EQ(count, 100);
}

TEST_F(Streams, DestroyForceThrowsAway) {
  Gate gate;
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  for (int i = 0; i < 100; ++i) ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &count));
  gate.WaitUntilEntered();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.Open();
  });
  EXPECT_OK(aclrtDestroyStreamForce(stream_));
  opener.join();
  EXPECT_LT(count, 100);
}

TEST_F(Streams, NullsAndStaleAndForeignOnes) {
  EXPECT_CODE(aclrtCreateStream(nullptr), ACL_ERROR_INVALID_PARAM, "stream");
  EXPECT_CODE(aclrtCreateStreamWithConfig(nullptr, 0, 0), ACL_ERROR_INVALID_PARAM, "stream");
  EXPECT_CODE(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM, "stream");
  EXPECT_CODE(aclrtDestroyStreamForce(nullptr), ACL_ERROR_INVALID_PARAM, "stream");
  EXPECT_CODE(aclrtStreamGetId(stream_, nullptr), ACL_ERROR_INVALID_PARAM, "streamId");
  EXPECT_OK(aclrtSynchronizeStream(nullptr));
  aclrtEvent event = nullptr;
  ASSERT_OK(aclrtCreateEvent(&event));
  ASSERT_OK(aclrtDestroyStream(stream_));
  int local = 0;
  for (void* const handle : {kForeign, static_cast<void*>(&local), event, stream_}) {
    aclrtStreamStatus status;
    std::int32_t id = 0;
    char byte = 0;
    const auto bad = ACL_ERROR_RT_INVALID_HANDLE;
    EXPECT_CODE(aclrtSynchronizeStream(handle), bad, "no live stream");
    EXPECT_CODE(aclrtSynchronizeStreamWithTimeout(handle, 1), bad, "no live stream");
    EXPECT_CODE(aclrtDestroyStream(handle), bad, "no live stream");
    EXPECT_CODE(aclrtDestroyStreamForce(handle), bad, "no live stream");
    EXPECT_CODE(aclrtStreamQuery(handle, &status), bad, "no live stream");
    EXPECT_CODE(aclrtStreamGetId(handle, &id), bad, "no live stream");
    EXPECT_CODE(aclrtStreamWaitEvent(handle, event), bad, "no live stream");
    EXPECT_CODE(aclrtRecordEvent(event, handle), bad, "no live stream");
    EXPECT_CODE(aclrtResetEvent(event, handle), bad, "no live stream");
    EXPECT_CODE(aclrtMemsetAsync(&byte, 1, 0, 1, handle), bad, "no live stream");
    EXPECT_CODE(aclrtLaunchHostFunc(handle, Throw, nullptr), bad, "no live stream");
  }
}

TEST_F(Streams, NeedAContextToBeMade) {
  std::thread([] {
    aclrtStream stream = nullptr;
    EXPECT_CODE(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL, "no current context");
    EXPECT_CODE(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH),
                ACL_ERROR_RT_CONTEXT_NULL, "no current context");
  }).join();
}

TEST_F(Streams, IdsDiffer) {
  aclrtStream other = nullptr;
  ASSERT_OK(aclrtCreateStreamWithConfig(&other, 7, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  std::int32_t mine = -1;
  std::int32_t its = -1;
  std::int32_t default_one = -1;
  EXPECT_OK(aclrtStreamGetId(stream_, &mine));
  EXPECT_OK(aclrtStreamGetId(other, &its));
  EXPECT_OK(aclrtStreamGetId(nullptr, &default_one));
  EXPECT_NE(mine, its);
  EXPECT_NE(mine, default_one);
  EXPECT_OK(aclrtDestroyStream(other));
}

TEST_F(Streams, ManyComeAndGo) {
  for (int i = 0; i < 3000; ++i) {
    aclrtStream stream = nullptr;
    ASSERT_OK(aclrtCreateStream(&stream));
    if (i % 10 == 0) {
      std::atomic<int> count = 0;
      ASSERT_OK(aclrtLaunchHostFunc(stream, Add, &count));
      ASSERT_OK(aclrtSynchronizeStream(stream));
      ASSERT_EQ(count, 1);
    }
    ASSERT_OK(aclrtDestroyStream(stream));
  }
}

// One thread queues while others wait and one destroys.
TEST_F(Streams, DestroyedUnderWaiters) {
  for (int round = 0; round < 50; ++round) {
    aclrtStream stream = nullptr;
    ASSERT_OK(aclrtCreateStream(&stream));
    std::atomic<int> count = 0;
    for (int i = 0; i < 20; ++i) ASSERT_OK(aclrtLaunchHostFunc(stream, Add, &count));
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&] {
        const int code = aclrtSynchronizeStream(stream);
        EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_INVALID_HANDLE) << code;
      });
    }
    EXPECT_OK(round % 2 == 0 ? aclrtDestroyStream(stream) : aclrtDestroyStreamForce(stream));
    for (std::thread& waiter : waiters) waiter.join();
    EXPECT_TRUE(round % 2 != 0 || count == 20) << count;
  }
}

}  // namespace
}  // namespace moeperm::cann::testing
