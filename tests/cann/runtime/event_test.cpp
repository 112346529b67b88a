// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <thread>
#include <vector>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

class Events : public WithStream {
 protected:
  void SetUp() override {
    WithStream::SetUp();
    ASSERT_OK(aclrtCreateStream(&other_));
    ASSERT_OK(aclrtCreateEvent(&event_));
  }
  aclrtStream other_ = nullptr;
  aclrtEvent event_ = nullptr;
};

TEST_F(Events, OrderStreams) {
  Gate gate;
  std::atomic<int> before = 0;
  std::atomic<int> after = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Add, &before));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event_));
  ASSERT_OK(aclrtLaunchHostFunc(other_, Add, &after));
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(other_, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_EQ(after, 0);
  aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_OK(aclrtQueryEventWaitStatus(event_, &waits));
  EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_NOT_READY);
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 1);
  EXPECT_OK(aclrtQueryEventWaitStatus(event_, &waits));
  EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
}

// What counts is the record there was when the wait was queued.
TEST_F(Events, WaitsTakeTheLatestRecord) {
  Gate gate;
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event_));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  EXPECT_OK(aclrtSynchronizeStream(other_));  // its wait was for the first record
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, 10), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  gate.Open();
  EXPECT_OK(aclrtSynchronizeEvent(event_));
}

TEST_F(Events, NeverRecordedOnesAreComplete) {
  aclrtEvent ex = nullptr;
  ASSERT_OK(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC));
  for (const aclrtEvent event : {event_, ex}) {
    aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_OK(aclrtQueryEventStatus(event, &recorded));
    EXPECT_EQ(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    EXPECT_OK(aclrtSynchronizeEvent(event));
    EXPECT_OK(aclrtSynchronizeEventWithTimeout(event, 0));
    EXPECT_OK(aclrtStreamWaitEvent(stream_, event));
  }
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Events, Queries) {
  Gate gate;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  EXPECT_OK(aclrtQueryEvent(event_, &status));
  EXPECT_EQ(status, ACL_EVENT_STATUS_NOT_READY);
  EXPECT_OK(aclrtQueryEventStatus(event_, &recorded));
  EXPECT_EQ(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  gate.Open();
  while (recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY) {
    ASSERT_OK(aclrtQueryEventStatus(event_, &recorded));
  }
  EXPECT_OK(aclrtQueryEvent(event_, &status));
  EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
}

TEST_F(Events, ResetForgetsTheRecord) {
  Gate gate;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtResetEvent(event_, stream_));
  EXPECT_OK(aclrtSynchronizeEvent(event_));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_CODE(aclrtEventElapsedTime(nullptr, event_, event_), ACL_ERROR_INVALID_PARAM, "ms");
  float ms = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, event_), ACL_ERROR_RT_INTERNAL_ERROR);
}

TEST_F(Events, ExOnesRefuseResetAndQuery) {
  aclrtEvent ex = nullptr;
  ASSERT_OK(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_CODE(aclrtQueryEvent(ex, &status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "forbids");
  EXPECT_CODE(aclrtResetEvent(ex, stream_), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "forbids");
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(aclrtRecordEvent(ex, stream_));
    EXPECT_OK(aclrtStreamWaitEvent(other_, ex));
  }
  EXPECT_OK(aclrtSynchronizeStream(other_));
}

TEST_F(Events, Times) {
  aclrtEvent end = nullptr;
  ASSERT_OK(aclrtCreateEvent(&end));
  float ms = -1;
  std::uint64_t time = 0;
  EXPECT_CODE(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_INTERNAL_ERROR,
              "startEvent was never recorded");
  EXPECT_CODE(aclrtEventGetTimestamp(event_, &time), ACL_ERROR_RT_INTERNAL_ERROR, "never recorded");
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtSynchronizeEvent(event_));
  EXPECT_CODE(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_INTERNAL_ERROR,
              "endEvent was never recorded");
  Gate gate;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtRecordEvent(end, stream_));
  EXPECT_CODE(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_EVENT_NOT_COMPLETE, "not done");
  EXPECT_CODE(aclrtEventGetTimestamp(end, &time), ACL_ERROR_RT_EVENT_NOT_COMPLETE, "not done");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeEvent(end));
  EXPECT_OK(aclrtEventElapsedTime(&ms, event_, end));
  EXPECT_GE(ms, 20.0F);
  EXPECT_LT(ms, 60000.0F);
  std::uint64_t end_time = 0;
  EXPECT_OK(aclrtEventGetTimestamp(event_, &time));
  EXPECT_OK(aclrtEventGetTimestamp(end, &end_time));
  EXPECT_NEAR(static_cast<double>(end_time - time), 1000.0 * ms, 2.0);
  EXPECT_CODE(aclrtEventElapsedTime(&ms, end, event_), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
              "before startEvent");
  EXPECT_OK(aclrtEventElapsedTime(&ms, end, end));
  EXPECT_EQ(ms, 0.0F);
}

TEST_F(Events, WithoutTimes) {
  aclrtEvent event = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtSynchronizeEvent(event));
  float ms = 0;
  std::uint64_t time = 0;
  EXPECT_CODE(aclrtEventElapsedTime(&ms, event, event_), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
              "ACL_EVENT_TIME_LINE");
  EXPECT_CODE(aclrtEventGetTimestamp(event, &time), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
              "ACL_EVENT_TIME_LINE");
}

TEST_F(Events, Flags) {
  aclrtEvent event = nullptr;
  for (const std::uint32_t flag : {0x1U, 0x2U, 0x8U, 0x9U, 0x10U, 0x20U, 0x40U, 0x7BU}) {
    EXPECT_OK(aclrtCreateEventWithFlag(&event, flag));
    EXPECT_OK(aclrtCreateEventExWithFlag(&event, flag));
  }
  for (const std::uint32_t flag : {0x0U, 0x4U, 0x80U, 0xFFFFFFFFU}) {
    EXPECT_CODE(aclrtCreateEventWithFlag(&event, flag), ACL_ERROR_RT_PARAM_INVALID, "flag");
    EXPECT_CODE(aclrtCreateEventExWithFlag(&event, flag), ACL_ERROR_RT_PARAM_INVALID, "flag");
  }
}

// Codes of every call that takes an event, for what is none.
void ExpectRefused(aclrtEvent event, aclrtStream stream, aclrtEvent live, int code,
                   const char* part) {
  aclrtEventStatus status;
  aclrtEventRecordedStatus recorded;
  aclrtEventWaitStatus waits;
  float ms = 0;
  std::uint64_t time = 0;
  EXPECT_CODE(aclrtDestroyEvent(event), code, part);
  EXPECT_CODE(aclrtRecordEvent(event, stream), code, part);
  EXPECT_CODE(aclrtResetEvent(event, stream), code, part);
  EXPECT_CODE(aclrtStreamWaitEvent(stream, event), code, part);
  EXPECT_CODE(aclrtQueryEvent(event, &status), code, part);
  EXPECT_CODE(aclrtQueryEventStatus(event, &recorded), code, part);
  EXPECT_CODE(aclrtQueryEventWaitStatus(event, &waits), code, part);
  EXPECT_CODE(aclrtSynchronizeEvent(event), code, part);
  EXPECT_CODE(aclrtSynchronizeEventWithTimeout(event, 1), code, part);
  EXPECT_CODE(aclrtEventElapsedTime(&ms, event, live), code, part);
  EXPECT_CODE(aclrtEventElapsedTime(&ms, live, event), code, part);
  EXPECT_CODE(aclrtEventGetTimestamp(event, &time), code, part);
}

TEST_F(Events, NullsAndStaleAndForeignOnes) {
  EXPECT_CODE(aclrtCreateEvent(nullptr), ACL_ERROR_INVALID_PARAM, "event");
  EXPECT_CODE(aclrtCreateEventWithFlag(nullptr, 1), ACL_ERROR_INVALID_PARAM, "event");
  EXPECT_CODE(aclrtCreateEventExWithFlag(nullptr, 1), ACL_ERROR_INVALID_PARAM, "event");
  EXPECT_CODE(aclrtQueryEvent(event_, nullptr), ACL_ERROR_INVALID_PARAM, "status");
  EXPECT_CODE(aclrtQueryEventStatus(event_, nullptr), ACL_ERROR_INVALID_PARAM, "status");
  EXPECT_CODE(aclrtQueryEventWaitStatus(event_, nullptr), ACL_ERROR_INVALID_PARAM, "status");
  EXPECT_CODE(aclrtEventGetTimestamp(event_, nullptr), ACL_ERROR_INVALID_PARAM, "timestamp");
  EXPECT_CODE(aclrtSynchronizeEventWithTimeout(event_, -2), ACL_ERROR_RT_PARAM_INVALID, "timeout");
  ExpectRefused(nullptr, stream_, event_, ACL_ERROR_INVALID_PARAM, "vent is null");
  aclrtEvent stale = nullptr;
  ASSERT_OK(aclrtCreateEvent(&stale));
  ASSERT_OK(aclrtDestroyEvent(stale));
  for (void* const handle : {kForeign, stream_, stale}) {
    ExpectRefused(handle, stream_, event_, ACL_ERROR_RT_INVALID_HANDLE, "no live event");
  }
}

TEST_F(Events, DestroyedWhileWaitedFor) {
  Gate gate;
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event_));
  ASSERT_OK(aclrtLaunchHostFunc(other_, Add, &count));
  EXPECT_OK(aclrtDestroyEvent(event_));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(count, 1);
}

TEST_F(Events, ThrownAwayWorkCountsAsDone) {
  Gate gate;
  std::atomic<int> count = 0;
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event_));
  ASSERT_OK(aclrtLaunchHostFunc(other_, Add, &count));
  gate.WaitUntilEntered();
  std::thread opener([&] { gate.Open(); });
  EXPECT_OK(aclrtDestroyStreamForce(stream_));
  opener.join();
  EXPECT_OK(aclrtSynchronizeEvent(event_));
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(count, 1);
}

TEST_F(Events, SynchronizeHandsOutFailuresBeforeTheRecord) {
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Throw, nullptr));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
  EXPECT_OK(aclrtSynchronizeEvent(event_));
  ASSERT_OK(aclrtRecordEvent(event_, stream_));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Throw, nullptr));
  EXPECT_OK(aclrtSynchronizeEvent(event_));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
}

}  // namespace
}  // namespace moeperm::cann::testing
