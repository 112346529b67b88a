// SPDX-License-Identifier: Apache-2.0
// A user's program: forward on one stream, gradient on another that waits for an event; many times,
// from two threads, each with a context of its own.
#include <atomic>
#include <thread>

#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "sample.h"

namespace {

const int64_t kTokens = 64;
const int64_t kExperts = 8;
const int64_t kHidden = 96;
const int64_t kTopK = 3;
const int64_t kRows = kTokens * kTopK;

// Sends tokens to their experts and the rows back: every token comes back kTopK-fold.
void ThereAndBack(int round, std::atomic<int>* wrong) {
  aclrtStream forward = nullptr;
  aclrtStream backward = nullptr;
  aclrtEvent start = nullptr;
  aclrtEvent there = nullptr;
  aclrtEvent back = nullptr;
  CHECK(aclrtCreateStream(&forward));
  CHECK(aclrtCreateStreamWithConfig(&backward, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  CHECK(aclrtCreateEvent(&start));
  CHECK(aclrtCreateEventWithFlag(&there, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  CHECK(aclrtCreateEvent(&back));

  std::vector<float> tokens(kTokens * kHidden);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<float>(i % 97) + round;
  std::vector<int8_t> map(kTokens * kExperts, 0);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t j = 0; j < kTopK; ++j) map[t * kExperts + (t + 2 * j) % kExperts] = 1;
  }
  {
    DeviceTensor<float> d_tokens({kTokens, kHidden}, ACL_FLOAT, std::vector<float>(tokens.size()));
    DeviceTensor<int8_t> d_map({kTokens, kExperts}, ACL_BOOL, map);
    DeviceTensor<float> permuted({kRows, kHidden}, ACL_FLOAT, std::vector<float>(kRows * kHidden));
    DeviceTensor<int32_t> indices({kRows}, ACL_INT32, std::vector<int32_t>(kRows));
    DeviceTensor<float> grad({kTokens, kHidden}, ACL_FLOAT, tokens);
    void* address = nullptr;
    CHECK(aclGetRawTensorAddr(d_tokens.get(), &address));
    void* pinned = nullptr;
    const size_t bytes = tokens.size() * sizeof(float);
    CHECK(aclrtMallocHost(&pinned, bytes));
    std::copy(tokens.begin(), tokens.end(), static_cast<float*>(pinned));

    CHECK(aclrtRecordEvent(start, forward));
    CHECK(aclrtMemcpyAsync(address, bytes, pinned, bytes, ACL_MEMCPY_HOST_TO_DEVICE, forward));
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(d_tokens.get(), d_map.get(), nullptr,
                                                             kRows, false, permuted.get(), nullptr,
                                                             indices.get(), &size, &executor));
    void* workspace[2] = {nullptr, nullptr};
    if (size > 0) CHECK(aclrtMalloc(&workspace[0], size, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK(aclnnMoeTokenPermuteWithRoutingMap(workspace[0], size, executor, forward));
    CHECK(aclrtRecordEvent(there, forward));

    CHECK(aclrtStreamWaitEvent(backward, there));
    CHECK(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
        permuted.get(), nullptr, indices.get(), nullptr, kExperts, kTokens, false, grad.get(),
        nullptr, &size, &executor));
    if (size > 0) CHECK(aclrtMalloc(&workspace[1], size, ACL_MEM_MALLOC_NORMAL_ONLY));
    CHECK(aclnnMoeTokenPermuteWithRoutingMapGrad(workspace[1], size, executor, backward));
    CHECK(aclrtRecordEvent(back, backward));
    CHECK(aclrtSynchronizeEvent(back));

    float ms = -1;
    CHECK(aclrtEventElapsedTime(&ms, start, back));
    aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    CHECK(aclrtQueryEventStatus(there, &recorded));
    aclrtStreamStatus idle = ACL_STREAM_STATUS_NOT_READY;
    CHECK(aclrtSynchronizeStreamWithTimeout(backward, 10000));
    CHECK(aclrtStreamQuery(backward, &idle));
    if (ms < 0 || recorded != ACL_EVENT_RECORDED_STATUS_COMPLETE ||
        idle != ACL_STREAM_STATUS_COMPLETE) {
      std::printf("WRONG: %g ms, event %d, stream %d\n", static_cast<double>(ms),
                  static_cast<int>(recorded), static_cast<int>(idle));
      ++*wrong;
    }
    const std::vector<float> got = grad.ToHost();
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != tokens[i] * kTopK) {
        std::printf("WRONG: element %zu: %g\n", i, static_cast<double>(got[i]));
        ++*wrong;
        break;
      }
    }
    for (int i = 0; i < 2; ++i) {
      if (workspace[i] != nullptr) CHECK(aclrtFree(workspace[i]));
    }
    CHECK(aclrtFreeHost(pinned));
  }
  CHECK(aclrtDestroyEvent(start));
  CHECK(aclrtDestroyEvent(there));
  CHECK(aclrtDestroyEvent(back));
  CHECK(aclrtDestroyStream(forward));
  CHECK(aclrtDestroyStream(backward));
}

void Worker(int first, std::atomic<int>* wrong) {
  aclrtContext context = nullptr;
  CHECK(aclrtCreateContext(&context, 0));
  CHECK(aclrtSetCurrentContext(context));
  for (int round = first; round < first + 50; ++round) ThereAndBack(round, wrong);
  CHECK(aclrtDestroyContext(context));
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  std::atomic<int> wrong(0);
  std::thread one(Worker, 0, &wrong);
  std::thread two(Worker, 1000, &wrong);
  one.join();
  two.join();
  ThereAndBack(5000, &wrong);
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  std::printf("streams: %d wrong\n", wrong.load());
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
