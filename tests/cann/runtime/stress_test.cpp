// SPDX-License-Identifier: Apache-2.0
// Many threads, streams and events at once; random calls, right and wrong ones mixed.
#include <array>
#include <cstdio>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

#if defined(MOEPERM_UNDER_SANITIZER)
constexpr int kRounds = 150;
#else
constexpr int kRounds = 1500;
#endif

// A counter that is no atomic: only the order that streams and events give keeps it right.
struct Counter {
  int value = 0;
  static void Add(void* self) { ++static_cast<Counter*>(self)->value; }
};

// Work wanders over the streams, each step behind an event of the last one.
TEST_F(Runtime, EventsCarryOrderOverStreams) {
  constexpr int kStreams = 8;
  std::array<aclrtStream, kStreams> streams{};
  std::array<aclrtEvent, kStreams> events{};
  for (aclrtStream& stream : streams) ASSERT_OK(aclrtCreateStream(&stream));
  for (aclrtEvent& event : events) ASSERT_OK(aclrtCreateEvent(&event));
  std::mt19937 random(1);
  Counter counter;
  int added = 0;
  std::size_t at = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_OK(aclrtLaunchHostFunc(streams[at], Counter::Add, &counter));
    added += 3;
    ASSERT_OK(aclrtRecordEvent(events[at], streams[at]));
    const std::size_t next = random() % kStreams;
    ASSERT_OK(aclrtStreamWaitEvent(streams[next], events[at]));
    at = next;
    if (random() % 16 == 0) {
      ASSERT_OK(aclrtSynchronizeStream(streams[at]));
      ASSERT_EQ(counter.value, added);
    }
  }
  ASSERT_OK(aclrtSynchronizeStream(streams[at]));
  EXPECT_EQ(counter.value, added);
}

// Copies that the waiting thread runs itself, and callbacks, which it does not, in one order.
TEST_F(Runtime, CopiesAndCallbacksInOrder) {
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  char* memory = nullptr;
  ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&memory), 2, ACL_MEM_MALLOC_HUGE_FIRST));
  const auto check = [](void* self) {
    auto* const bytes = static_cast<char*>(self);
    if (bytes[0] != bytes[1]) throw std::runtime_error("out of order");
    bytes[0] = bytes[1] = 99;
  };
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_OK(aclrtMemsetAsync(memory, 2, i, 2, stream));
    ASSERT_OK(aclrtLaunchHostFunc(stream, check, memory));
    if (i % 3 == 0) {
      ASSERT_OK(aclrtSynchronizeStream(stream));
    }
  }
  EXPECT_OK(aclrtSynchronizeStream(stream));
}

TEST_F(Runtime, ThreadsOfTheirOwnAndSharedStreams) {
  aclrtContext context = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&context));
  aclrtStream shared = nullptr;
  ASSERT_OK(aclrtCreateStream(&shared));
  Counter shared_counter;
  std::vector<std::thread> threads;
  constexpr int kThreads = 6;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ASSERT_OK(aclrtSetCurrentContext(context));
      for (int round = 0; round < kRounds / 10; ++round) {
        aclrtStream stream = nullptr;
        aclrtEvent event = nullptr;
        void* memory = nullptr;
        Counter counter;
        ASSERT_OK(aclrtCreateStream(&stream));
        ASSERT_OK(aclrtCreateEvent(&event));
        ASSERT_OK(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
        ASSERT_OK(aclrtLaunchHostFunc(stream, Counter::Add, &counter));
        ASSERT_OK(aclrtMemsetAsync(memory, 4096, round, 4096, stream));
        ASSERT_OK(aclrtRecordEvent(event, stream));
        ASSERT_OK(aclrtStreamWaitEvent(shared, event));
        ASSERT_OK(aclrtLaunchHostFunc(shared, Counter::Add, &shared_counter));
        switch (round % 4) {
          case 0:
            ASSERT_OK(aclrtSynchronizeStream(stream));
            break;
          case 1:
            ASSERT_OK(aclrtSynchronizeEvent(event));
            break;
          case 2:
            ASSERT_OK(aclrtSynchronizeDevice());
            break;
          default:
            ASSERT_OK(aclrtSynchronizeStreamWithTimeout(stream, 600000));
            break;
        }
        ASSERT_EQ(counter.value, 1);
        ASSERT_OK(aclrtFree(memory));
        ASSERT_OK(aclrtDestroyEvent(event));
        ASSERT_OK(aclrtDestroyStream(stream));
        EXPECT_NE(aclrtDestroyStream(stream), ACL_SUCCESS);
        EXPECT_NE(TakeText(), "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(aclrtSynchronizeStream(shared));
  EXPECT_EQ(shared_counter.value, kThreads * (kRounds / 10));
}

// Handles and addresses, live, stale and wrong ones.
class Pool {
 public:
  explicit Pool(std::mt19937& random) : random_(random) {}
  void Add(void* one) {
    if (all_.size() < 40) {
      all_.push_back(one);
    } else {
      all_[random_() % all_.size()] = one;
    }
  }
  void* Pick() {
    switch (all_.empty() ? 0 : random_() % 12) {
      case 0:
        return nullptr;
      case 1:
        return reinterpret_cast<void*>(std::uintptr_t{random_()} << 8 | 16);
      default:
        return all_[random_() % all_.size()];
    }
  }

 private:
  std::mt19937& random_;
  std::vector<void*> all_;
};

// 100000 calls; whatever they get, the only proof asked for is that each returns a documented code
// and that nothing is touched that is not the program's.
class RandomCalls {
 public:
  RandomCalls(unsigned seed, std::map<int, int>& seen) : random_(seed), seen_(seen) {}
  // Nothing may be queued any longer when the memory goes.
  ~RandomCalls() {
    (void)aclInit(nullptr);  // should it be finalised: what was made since has to go too
    (void)aclFinalize();
  }
  void Run(int calls) {
    for (int i = 0; i < calls; ++i) {
      const int code = Call(static_cast<int>(random_() % 32));
      ++seen_[code];
      ASSERT_TRUE(Documented(code)) << "call " << i << " gave " << code << ": " << TakeText();
      if (code == ACL_SUCCESS || random_() % 8 != 0) continue;
      ASSERT_NE(TakeText(), "") << "call " << i << " gave " << code << " without a text";
    }
  }

 private:
  static bool Documented(int code) {
    for (const int one :
         {0,      100000, 100002, 100037, 107000, 107001, 107002, 107003, 107006, 107007, 107017,
          107021, 207000, 207001, 500001, 507000, 507006, 507007, 507035, 507046, 507047}) {
      if (code == one) return true;
    }
    return false;
  }
  int Small() { return static_cast<int>(random_() % 7) - 2; }
  std::size_t Size() { return random_() % 16 == 0 ? SIZE_MAX - random_() % 64 : random_() % 2000; }
  // Sets and copies only touch memory of `host_` or of device allocations, whose ends are checked.
  void* Address() { return random_() % 3 == 0 ? static_cast<void*>(host_.data()) : live_memory_; }

  int Call(int which) {
    void* made = nullptr;
    int code = 0;
    std::int32_t number = 0;
    switch (which) {
      case 0:
        return aclInit(nullptr);
      case 1:
        return random_() % 50 == 0 ? Finalize() : aclrtSynchronizeDevice();
      case 2:
        return aclrtSetDevice(Small() / 2);
      case 3:
        return random_() % 4 == 0 ? aclrtResetDevice(Small()) : aclrtGetDevice(&number);
      case 4:
        return random_() % 20 == 0 ? aclrtResetDeviceForce(Small()) : aclrtGetDevice(nullptr);
      case 5:
        code = aclrtCreateContext(random_() % 8 == 0 ? nullptr : &made, Small() / 2);
        contexts_.Add(made);
        return code;
      case 6:
        return aclrtDestroyContext(contexts_.Pick());
      case 7:
        return aclrtSetCurrentContext(contexts_.Pick());
      case 8:
      case 9:
        code = aclrtCreateStream(random_() % 8 == 0 ? nullptr : &made);
        streams_.Add(made);
        return code;
      case 10:
        return random_() % 2 == 0 ? aclrtDestroyStream(streams_.Pick())
                                  : aclrtDestroyStreamForce(streams_.Pick());
      case 11:
        return aclrtSynchronizeStream(streams_.Pick());
      case 12:
        return aclrtSynchronizeStreamWithTimeout(streams_.Pick(), Small());
      case 13: {
        aclrtStreamStatus status;
        return aclrtStreamQuery(streams_.Pick(), &status);
      }
      case 14:
        code = aclrtCreateEventWithFlag(&made, random_() % 16);
        events_.Add(made);
        return code;
      case 15:
        code = aclrtCreateEventExWithFlag(&made, random_() % 16);
        events_.Add(made);
        return code;
      case 16:
        return random_() % 3 == 0 ? aclrtDestroyEvent(events_.Pick())
                                  : aclrtResetEvent(events_.Pick(), streams_.Pick());
      case 17:
      case 18:
        return aclrtRecordEvent(events_.Pick(), streams_.Pick());
      case 19:
        return aclrtStreamWaitEvent(streams_.Pick(), events_.Pick());
      case 20:
        return aclrtSynchronizeEvent(events_.Pick());
      case 21:
        return aclrtSynchronizeEventWithTimeout(events_.Pick(), Small());
      case 22: {
        float ms = 0;
        return aclrtEventElapsedTime(&ms, events_.Pick(), events_.Pick());
      }
      case 23:
        code =
            aclrtMalloc(random_() % 8 == 0 ? nullptr : &made, Size(), ACL_MEM_MALLOC_NORMAL_ONLY);
        memory_.Add(made);
        if (made != nullptr) live_memory_ = made;
        return code;
      case 24:
        made = memory_.Pick();
        if (made == live_memory_) live_memory_ = nullptr;
        return aclrtFree(made);
      case 25:
      case 26: {
        const std::size_t count = random_() % host_.size();
        return aclrtMemsetAsync(Address(), count - random_() % 2, Small(), count, streams_.Pick());
      }
      case 27: {
        const std::size_t count = random_() % host_.size();
        return aclrtMemcpyAsync(Address(), Size(), source_.data(), count,
                                static_cast<aclrtMemcpyKind>(Small()), streams_.Pick());
      }
      case 28:
        return aclrtMemcpy(Address(), host_.size(), host_.data(), random_() % host_.size(),
                           static_cast<aclrtMemcpyKind>(Small()));
      case 29:
        return aclrtLaunchHostFunc(streams_.Pick(), random_() % 4 == 0 ? nullptr : Add, &count_);
      case 30:
        return aclrtLaunchHostFunc(streams_.Pick(), Throw, nullptr);
      default: {
        std::int64_t value = 0;
        return aclrtCtxGetSysParamOpt(static_cast<aclSysParamOpt>(Small()), &value);
      }
    }
  }
  int Finalize() {
    live_memory_ = nullptr;
    return aclFinalize();
  }

  std::mt19937 random_;
  std::map<int, int>& seen_;  // how often each code came
  Pool contexts_{random_};
  Pool streams_{random_};
  Pool events_{random_};
  Pool memory_{random_};
  std::vector<char> host_ = std::vector<char>(1000);
  std::vector<char> source_ = std::vector<char>(1000);
  void* live_memory_ = nullptr;
  std::atomic<int> count_ = 0;
};

TEST(RandomCallsTest, NeverCrash) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the calls write to the same memory from many streams, which is their own fault";
#endif
  std::map<int, int> seen;
  for (unsigned seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    RandomCalls(seed, seen).Run(10000);
  }
  // The calls get about: enough of them succeed, and they meet most of the codes.
  for (const int code : {100000, 100002, 107000, 107001, 107002, 107003, 107006, 107017, 107021,
                         207000, 207001, 507000, 507035}) {
    EXPECT_GT(seen[code], 10) << code;
  }
  EXPECT_GT(seen[ACL_SUCCESS], 20000);
  if (HasFailure()) {
    for (const auto& [code, count] : seen) std::printf("%d: %d\n", code, count);
  }
}

}  // namespace
}  // namespace moeperm::cann::testing
