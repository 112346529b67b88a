// SPDX-License-Identifier: Apache-2.0
// What the tests of the runtime share. ctest runs each test in a process of its own, so each finds
// the runtime as a program does; run together they still pass, but for those that say otherwise.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "acl/acl.h"

namespace moeperm::cann::testing {

using ::testing::HasSubstr;

// The thread's texts; empty where there are none.
inline std::string TakeText() {
  const char* const text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

// `call` gives `code`, which the last error then is, with a text that contains `part`.
#define EXPECT_CODE(call, code, part)                                              \
  do {                                                                             \
    ::moeperm::cann::testing::TakeText();                                          \
    EXPECT_EQ(call, code) << ::moeperm::cann::testing::TakeText();                 \
    EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), code);                       \
    (call);                                                                        \
    EXPECT_THAT(::moeperm::cann::testing::TakeText(), ::testing::HasSubstr(part)); \
  } while (false)

#define EXPECT_OK(call) EXPECT_EQ(call, ACL_SUCCESS) << ::moeperm::cann::testing::TakeText()
#define ASSERT_OK(call) ASSERT_EQ(call, ACL_SUCCESS) << ::moeperm::cann::testing::TakeText()

// A task that waits until it is let go.
class Gate {
 public:
  ~Gate() { Open(); }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void WaitUntilEntered() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return entered_; });
  }
  static void Enter(void* self) {
    auto* const gate = static_cast<Gate*>(self);
    std::unique_lock lock(gate->mutex_);
    gate->entered_ = true;
    gate->changed_.notify_all();
    gate->changed_.wait(lock, [gate] { return gate->open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool entered_ = false;
};

inline void Add(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }
inline void Throw(void*) { throw std::runtime_error("thrown by a callback"); }

// An initialised runtime with device 0 set.
class Runtime : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(aclInit(nullptr));
    ASSERT_OK(aclrtSetDevice(0));
  }
  void TearDown() override { EXPECT_OK(aclFinalize()); }
};

// With a stream too.
class WithStream : public Runtime {
 protected:
  void SetUp() override {
    Runtime::SetUp();
    ASSERT_OK(aclrtCreateStream(&stream_));
  }
  aclrtStream stream_ = nullptr;
};

inline void* const kForeign = reinterpret_cast<void*>(0x123450);

}  // namespace moeperm::cann::testing
