// SPDX-License-Identifier: Apache-2.0
// Executors in phase 2: once, more than once, with new addresses, from many threads.
#include <algorithm>
#include <thread>
#include <vector>

#include "fixtures.hpp"

namespace moeperm::test {
namespace {

class CannExecutorRun : public testing::Test {
 protected:
  CannExecutorRun()
      : rows(one.call.rows),
        probs(one.call.probs),
        indices(one.call.indices),
        map(one.call.map),
        tokens_out(one.call.tokens_out),
        probs_out(one.call.probs_out) {}

  aclOpExecutor* Make() {
    aclOpExecutor* executor = nullptr;
    std::uint64_t size = 1;
    EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
                  rows.get(), probs.get(), indices.get(), map.get(), 3, 3, false, tokens_out.get(),
                  probs_out.get(), &size, &executor),
              0);
    EXPECT_EQ(size, 0U);
    return executor;
  }
  int Phase2(aclOpExecutor* executor, void* workspace = nullptr, std::uint64_t size = 0) {
    return aclnnMoeTokenPermuteWithRoutingMapGrad(workspace, size, executor, stream.get());
  }

  Stream stream;
  F1Grad one;
  AclTensor rows, probs, indices, map, tokens_out, probs_out;
};

TEST_F(CannExecutorRun, RunsOnce) {
  aclOpExecutor* const executor = Make();
  EXPECT_EQ(Phase2(executor), 0);
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_INNER);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_INNER);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER);
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
}

TEST_F(CannExecutorRun, Workspace) {
  char workspace[16];
  aclOpExecutor* executor = Make();
  EXPECT_EQ(Phase2(executor, nullptr, 16), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_INNER);  // released by the refusal
  executor = Make();
  EXPECT_EQ(Phase2(executor, workspace, sizeof(workspace)), 0);  // more than needed is fine
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.probs_out, kProbsGrad);
}

TEST_F(CannExecutorRun, StreamThatIsNone) {
  aclOpExecutor* const executor = Make();
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, 0, executor, &one),
            ACLNN_ERR_RUNTIME_ERROR);
  EXPECT_EQ(one.tokens_out, Floats(6, 99));
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_INNER);
}

TEST_F(CannExecutorRun, AnyOperatorRunsIt) {
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMap(nullptr, 0, Make(), stream.get()), 0);
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
}

TEST_F(CannExecutorRun, RepeatsWithNewAddresses) {
  aclOpExecutor* const executor = Make();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  ASSERT_EQ(Phase2(executor), 0);
  ASSERT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
  Floats other_rows = one.rows;
  for (float& value : other_rows) value *= 2;
  Floats other_out(6, 99);
  ASSERT_EQ(aclSetInputTensorAddr(executor, 0, rows.get(), other_rows.data()), 0);
  ASSERT_EQ(aclSetOutputTensorAddr(executor, 0, tokens_out.get(), other_out.data()), 0);
  one.tokens_out.assign(6, 99);
  // What is queued keeps the address it was queued with.
  ASSERT_EQ(Phase2(executor), 0);
  ASSERT_EQ(aclSetTensorAddr(executor, 4, tokens_out.get(), one.tokens_out.data()), 0);
  ASSERT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(other_out, (Floats{34, -34, 12, -12, 80, -80}));
  EXPECT_EQ(one.tokens_out, Floats(6, 99));
  // A refused run leaves it usable.
  ASSERT_EQ(aclSetRawTensorAddr(tokens_out.get(), nullptr), 0);
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_PARAM_INVALID);
  ASSERT_EQ(aclSetRawTensorAddr(tokens_out.get(), one.tokens_out.data()), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Phase2(executor), 0);
  ASSERT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, other_out);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER);
}

// Metadata is that of phase 1; the address is that of phase 2; the objects may be gone by then.
TEST_F(CannExecutorRun, WhatIsSnapshot) {
  aclOpExecutor* executor = Make();
  const std::int64_t dims[] = {1};
  Floats other(6, 99);
  ASSERT_EQ(aclInitTensor(tokens_out.get(), dims, 1, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, dims, 1,
                          other.data()),
            0);
  EXPECT_EQ(Phase2(executor), 0);
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(other, kTokensGrad);
  AclTensor fresh(one.call.tokens_out);
  std::uint64_t size = 0;
  ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
                rows.get(), probs.get(), indices.get(), map.get(), 3, 3, false, fresh.get(),
                probs_out.get(), &size, &executor),
            0);
  for (AclTensor* tensor : {&rows, &probs, &indices, &map, &fresh, &probs_out}) tensor->Destroy();
  EXPECT_EQ(Phase2(executor), 0);
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
  EXPECT_EQ(one.probs_out, kProbsGrad);
}

// Threads with streams of their own, at once.
TEST(CannExecutorThreads, CallsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 300;
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([] {
      EXPECT_EQ(aclrtSetDevice(0), 0);
      Stream stream;
      F1Grad one;
      for (int i = 0; i < kRounds; ++i) {
        one.tokens_out.assign(6, 99);
        ASSERT_EQ(RunCall(one.call, stream), Codes{});
        ASSERT_EQ(one.tokens_out, kTokensGrad);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Of all that run one executor that is not repeatable, one does.
TEST_F(CannExecutorRun, OneThreadWins) {
  for (int round = 0; round < 50; ++round) {
    aclOpExecutor* const executor = Make();
    std::vector<int> codes(4, -1);
    std::vector<std::thread> threads;
    for (int& code : codes) {
      threads.emplace_back([&, this] {
        EXPECT_EQ(aclrtSetDevice(0), 0);
        code = Phase2(executor);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(std::count(codes.begin(), codes.end(), 0), 1);
    ASSERT_EQ(std::count(codes.begin(), codes.end(), ACLNN_ERR_INNER), 3);
  }
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
}

}  // namespace
}  // namespace moeperm::test
