// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "cann/runtime/support.hpp"

namespace moeperm::cann::testing {
namespace {

using Memory = WithStream;
constexpr auto kPolicy = ACL_MEM_MALLOC_HUGE_FIRST;

TEST_F(Memory, IsAlignedAndWhole) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{31}, std::size_t{4096},
                                 (std::size_t{1} << 20) + 1, std::size_t{5} << 20}) {
    for (int policy : {0, 1, 2, 3, 7, 0x100, 0x100002, 99}) {
      void* memory = nullptr;
      ASSERT_OK(aclrtMalloc(&memory, size, static_cast<aclrtMemMallocPolicy>(policy)));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 512, 0U);
      std::memset(memory, 1, size + 32);  // operators may read 32 bytes behind the end
      EXPECT_OK(aclrtFree(memory));
    }
    for (const auto allocate : {aclrtMallocAlign32, aclrtMallocCached}) {
      void* memory = nullptr;
      ASSERT_OK(allocate(&memory, size, kPolicy));
      std::memset(memory, 1, size);
      EXPECT_OK(aclrtFree(memory));
    }
    void* memory = nullptr;
    aclrtMallocAttribute attribute{0, 0};
    aclrtMallocConfig config{&attribute, 1};
    ASSERT_OK(aclrtMallocWithCfg(&memory, size, kPolicy, nullptr));
    EXPECT_OK(aclrtFree(memory));
    ASSERT_OK(aclrtMallocWithCfg(&memory, size, kPolicy, &config));
    EXPECT_OK(aclrtFree(memory));
    config.attrs = nullptr;
    EXPECT_CODE(aclrtMallocWithCfg(&memory, size, kPolicy, &config), ACL_ERROR_INVALID_PARAM,
                "attrs");
    ASSERT_OK(aclrtMallocHost(&memory, size));
    std::memset(memory, 1, size);
    EXPECT_OK(aclrtFreeHost(memory));
  }
}

TEST_F(Memory, BadArguments) {
  void* memory = nullptr;
  for (const auto allocate : {aclrtMalloc, aclrtMallocAlign32, aclrtMallocCached}) {
    EXPECT_CODE(allocate(nullptr, 8, kPolicy), ACL_ERROR_INVALID_PARAM, "devPtr");
    EXPECT_CODE(allocate(&memory, 0, kPolicy), ACL_ERROR_INVALID_PARAM, "size");
    for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 31, SIZE_MAX / 2, std::size_t{1} << 62}) {
      EXPECT_CODE(allocate(&memory, size, kPolicy), ACL_ERROR_RT_MEMORY_ALLOCATION, "bytes");
    }
  }
  EXPECT_CODE(aclrtMallocWithCfg(nullptr, 8, kPolicy, nullptr), ACL_ERROR_INVALID_PARAM, "devPtr");
  EXPECT_CODE(aclrtMallocHost(nullptr, 8), ACL_ERROR_INVALID_PARAM, "hostPtr");
  EXPECT_CODE(aclrtMallocHost(&memory, 0), ACL_ERROR_INVALID_PARAM, "size");
  EXPECT_CODE(aclrtMallocHost(&memory, SIZE_MAX), ACL_ERROR_RT_MEMORY_ALLOCATION, "bytes");
  EXPECT_EQ(memory, nullptr);
  std::thread([&] {
    EXPECT_CODE(aclrtMalloc(&memory, 8, kPolicy), ACL_ERROR_RT_CONTEXT_NULL, "no current context");
  }).join();
}

TEST_F(Memory, FreesOnlyWhatIsLive) {
  EXPECT_CODE(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM, "devPtr");
  EXPECT_CODE(aclrtFreeHost(nullptr), ACL_ERROR_INVALID_PARAM, "hostPtr");
  char* device = nullptr;
  void* host = nullptr;
  ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&device), 100, kPolicy));
  ASSERT_OK(aclrtMallocHost(&host, 100));
  EXPECT_CODE(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID, "allocation of a device");
  EXPECT_CODE(aclrtFreeHost(device), ACL_ERROR_RT_PARAM_INVALID, "allocation of the host");
  EXPECT_CODE(aclrtFree(device + 1), ACL_ERROR_RT_PARAM_INVALID, "no live");
  EXPECT_CODE(aclrtFree(kForeign), ACL_ERROR_RT_PARAM_INVALID, "no live");
  EXPECT_OK(aclrtFree(device));
  EXPECT_OK(aclrtFreeHost(host));
  EXPECT_CODE(aclrtFree(device), ACL_ERROR_RT_PARAM_INVALID, "no live");
  EXPECT_CODE(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID, "no live");
}

TEST_F(Memory, SurvivesResetsAndNeedsNoContextToBeFreed) {
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 100, kPolicy));
  ASSERT_OK(aclrtResetDevice(0));
  std::memset(memory, 1, 100);
  EXPECT_OK(aclrtFree(memory));
}

// The pages stay until the work queued before the free is done.
TEST_F(Memory, FreedUnderQueuedWork) {
  Gate gate;
  std::vector<void*> blocks(20);
  ASSERT_OK(aclrtLaunchHostFunc(stream_, Gate::Enter, &gate));
  for (void*& block : blocks) {
    ASSERT_OK(aclrtMalloc(&block, 1000, kPolicy));
    ASSERT_OK(aclrtMemsetAsync(block, 1000, 7, 1000, stream_));
    EXPECT_OK(aclrtFree(block));
    EXPECT_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
  }
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Memory, IsCounted) {
  std::size_t before = 0;
  std::size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  EXPECT_GT(total, std::size_t{1} << 28);
  EXPECT_EQ(before, total);
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 1000, kPolicy));
  std::size_t now = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_DDR_MEM, &now, &total));
  EXPECT_EQ(before - now, 1024U + 32);
  EXPECT_OK(aclrtFree(memory));
  ASSERT_OK(aclrtMallocAlign32(&memory, 1000, kPolicy));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM_NORMAL, &now, &total));
  EXPECT_EQ(before - now, 1024U);
  EXPECT_OK(aclrtFree(memory));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &now, &total));
  EXPECT_EQ(now, before);
  EXPECT_EQ(aclrtMalloc(&memory, total + 1, kPolicy), ACL_ERROR_RT_MEMORY_ALLOCATION);
}

TEST_F(Memory, InfoOfKinds) {
  std::size_t free = 1;
  std::size_t total = 1;
  for (int attr = 0; attr <= 17; ++attr) {
    EXPECT_OK(aclrtGetMemInfo(static_cast<aclrtMemAttr>(attr), &free, &total));
    const bool peer_or_1g = (attr >= 6 && attr <= 11) || attr >= 14;
    EXPECT_EQ(total == 0, peer_or_1g) << attr;
    EXPECT_LE(free, total);
  }
  for (const int attr : {-1, 18, 1000}) {
    EXPECT_CODE(aclrtGetMemInfo(static_cast<aclrtMemAttr>(attr), &free, &total),
                ACL_ERROR_RT_INVALID_MEMORY_TYPE, "attr");
  }
  EXPECT_CODE(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), ACL_ERROR_INVALID_PARAM, "free");
  EXPECT_CODE(aclrtGetMemInfo(ACL_HBM_MEM, &free, nullptr), ACL_ERROR_INVALID_PARAM, "total");
  std::thread([&] {
    EXPECT_CODE(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_ERROR_RT_CONTEXT_NULL, "context");
  }).join();
}

TEST_F(Memory, Attributes) {
  char* device = nullptr;
  char* host = nullptr;
  ASSERT_OK(aclrtMalloc(reinterpret_cast<void**>(&device), 100, kPolicy));
  ASSERT_OK(aclrtMallocHost(reinterpret_cast<void**>(&host), 100));
  aclrtPtrAttributes attributes;
  EXPECT_OK(aclrtPointerGetAttributes(device + 99, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.location.id, 0U);
  EXPECT_GE(attributes.pageSize, 4096U);
  EXPECT_OK(aclrtPointerGetAttributes(host, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  EXPECT_OK(aclrtPointerGetAttributes(&attributes, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_OK(aclrtFree(device));
  EXPECT_OK(aclrtPointerGetAttributes(device, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  EXPECT_CODE(aclrtPointerGetAttributes(nullptr, &attributes), ACL_ERROR_INVALID_PARAM, "ptr");
  EXPECT_CODE(aclrtPointerGetAttributes(host, nullptr), ACL_ERROR_INVALID_PARAM, "attributes");
}

TEST_F(Memory, FlushAndInvalidate) {
  int value = 0;
  for (const auto call : {aclrtMemFlush, aclrtMemInvalidate}) {
    EXPECT_OK(call(&value, sizeof value));
    EXPECT_CODE(call(nullptr, 4), ACL_ERROR_INVALID_PARAM, "devPtr");
    EXPECT_CODE(call(&value, 0), ACL_ERROR_INVALID_PARAM, "size");
  }
}

// In a process of its own.
TEST(MemoryOfSoc, Ascend950HasNoSlack) {
  setenv("MOEPERM_SOC", "Ascend950", 1);
  ASSERT_OK(aclrtSetDevice(0));
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 1000, kPolicy));
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  EXPECT_EQ(total - free, 1024U);
}

}  // namespace
}  // namespace moeperm::cann::testing
