// SPDX-License-Identifier: Apache-2.0
// What only phase 2 can tell, executors that run more than once, errors of the work, and outputs
// that share memory or have shapes of their own.
#include <gmock/gmock.h>

#include "door.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

constexpr Codes kGood = {0, 0, 0};
constexpr Codes kRefused = {0, ACLNN_ERR_PARAM_INVALID, 0};

Spec Of(std::vector<std::int64_t> dims, std::vector<float>& values) {
  Spec spec;
  spec.dims = std::move(dims);
  spec.storage = {static_cast<std::int64_t>(values.size())};
  spec.data = values.data();
  return spec;
}
Spec Of(std::vector<std::int64_t> dims, std::vector<std::int32_t>& values) {
  Spec spec;
  spec.dims = std::move(dims);
  spec.dtype = ACL_INT32;
  spec.storage = {static_cast<std::int64_t>(values.size())};
  spec.data = values.data();
  return spec;
}

// F1, backward, in vectors.
struct F1Grad {
  Floats rows = {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32};
  Floats probs = {1, 2, 3, 4, 5, 6};
  std::vector<std::int32_t> indices = {0, 4, 1, 2, 3, 5};
  std::vector<std::int8_t> map = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  Floats tokens_out = Floats(6, 99);
  Floats probs_out = Floats(9, 99);
  GradCall call;

  F1Grad() {
    call.rows = Of({6, 2}, rows);
    call.probs = Of({6}, probs);
    call.indices = Of({6}, indices);
    call.map.dims = {3, 3};
    call.map.dtype = ACL_INT8;
    call.map.data = map.data();
    call.num_experts = 3;
    call.num_tokens = 3;
    call.tokens_out = Of({3, 2}, tokens_out);
    call.probs_out = Of({3, 3}, probs_out);
  }
  F1Grad(const F1Grad&) = delete;
  F1Grad& operator=(const F1Grad&) = delete;
};
const Floats kTokensGrad = {17, -17, 6, -6, 40, -40};
const Floats kProbsGrad = {1, 0, 5, 2, 3, 0, 0, 4, 6};

// F4, backward.
struct F4Grad {
  Floats rows = {1, 2, 4, 8};
  Floats probs = {1, 2, 3, 4};
  std::vector<std::int32_t> indices = {0, 1, 1, 0};
  std::vector<std::int8_t> map = std::vector<std::int8_t>(8, 1);  // not read
  Floats tokens_out = Floats(4, 99);
  Floats probs_out = Floats(8, 99);
  GradCall call;

  F4Grad() {
    call.rows = Of({4, 1}, rows);
    call.probs = Of({4}, probs);
    call.indices = Of({4}, indices);
    call.map.dims = {4, 2};
    call.map.dtype = ACL_INT8;
    call.map.data = map.data();
    call.num_experts = 2;
    call.num_tokens = 4;
    call.drop_and_pad = true;
    call.tokens_out = Of({4, 1}, tokens_out);
    call.probs_out = Of({4, 2}, probs_out);
  }
  F4Grad(const F4Grad&) = delete;
  F4Grad& operator=(const F4Grad&) = delete;
};

// F1, forward.
struct F1Forward {
  Floats tokens = {1, 10, 2, 20, 3, 30};
  std::vector<std::int8_t> map = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  Floats probs = {.5, 0, .25, .75, .125, 0, 0, .375, .625};
  Floats tokens_out = Floats(12, 99);
  Floats probs_out = Floats(6, 99);
  std::vector<std::int32_t> indices_out = std::vector<std::int32_t>(6, 99);
  ForwardCall call;

  F1Forward() {
    call.tokens = Of({3, 2}, tokens);
    call.map.dims = {3, 3};
    call.map.dtype = ACL_INT8;
    call.map.data = map.data();
    call.probs = Of({3, 3}, probs);
    call.num_out_tokens = 6;
    call.tokens_out = Of({6, 2}, tokens_out);
    call.probs_out = Of({6}, probs_out);
    call.indices_out = Of({6}, indices_out);
  }
  F1Forward(const F1Forward&) = delete;
  F1Forward& operator=(const F1Forward&) = delete;
};
const Floats kPermuted = {1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30};
const Floats kPermutedProbs = {.5, .75, .125, .375, .25, .625};
const std::vector<std::int32_t> kSlots = {0, 4, 1, 2, 3, 5};

// Refused with this text; the outputs are as they were.
template <class Case, class Change>
void ExpectRefused(const std::string& text, Change change) {
  Stream stream;
  Case one;
  change(one);
  const Floats before = one.tokens_out;
  TakeError();
  EXPECT_EQ(RunCall(one.call, stream), kRefused) << text;
  EXPECT_THAT(TakeError(), HasSubstr(text));
  EXPECT_EQ(one.tokens_out, before) << text;
  // The stream holds nothing of it and goes on.
  F1Grad good;
  EXPECT_EQ(RunCall(good.call, stream), kGood);
  EXPECT_EQ(good.tokens_out, kTokensGrad);
}

TEST(CannPhase2, RefusedGradient) {
  ExpectRefused<F1Grad>("permutedTokenOutputGrad has 5 rows, no multiple of tokensNum = 3",
                        [](F1Grad& c) {
                          c.call.rows.dims = {5, 2};
                        });
  ExpectRefused<F1Grad>("sortedIndices has 5 element(s) but 6",
                        [](F1Grad& c) { c.call.indices.dims = {5}; });
  ExpectRefused<F1Grad>("tokensGradOut of shape [2, 2] does not hold 3 x 2", [](F1Grad& c) {
    c.call.tokens_out.dims = {2, 2};
  });
  ExpectRefused<F1Grad>("tokensGradOut of shape [3, 1]", [](F1Grad& c) {
    c.call.tokens_out.dims = {3, 1};
  });
  ExpectRefused<F1Grad>("probsGradOutOptional has shape [9] but routingMapOptional has [3, 3]",
                        [](F1Grad& c) { c.call.probs_out.dims = {9}; });
  ExpectRefused<F1Grad>("probsGradOutOptional has shape [3, 2] but routingMapOptional has [3, 3]",
                        [](F1Grad& c) {
                          c.call.probs_out.dims = {3, 2};
                        });
  ExpectRefused<F1Grad>("reaches outside its storage",
                        [](F1Grad& c) { c.call.rows.storage = {11}; });
  ExpectRefused<F1Grad>("reaches outside its storage", [](F1Grad& c) { c.call.rows.offset = 1; });
  ExpectRefused<F1Grad>("reaches outside its storage",
                        [](F1Grad& c) { c.call.tokens_out.offset = -1; });
  ExpectRefused<F1Grad>("reaches outside its storage", [](F1Grad& c) {
    c.call.map.strides = {4, 1};
  });
  ExpectRefused<F1Grad>("sortedIndices has shape [6] but its address is null",
                        [](F1Grad& c) { c.call.indices.data = nullptr; });
  ExpectRefused<F1Grad>("not a multiple of the 4 bytes", [](F1Grad& c) {
    c.call.probs.data = reinterpret_cast<char*>(c.probs.data()) + 1;
  });
}

TEST(CannPhase2, RefusedGradientWithPads) {
  ExpectRefused<F4Grad>("sortedIndices has 4 element(s) but may have at most 3", [](F4Grad& c) {
    c.call.rows.dims = {3, 1};
  });
  ExpectRefused<F4Grad>("sortedIndices has 3 element(s) but 4 are needed",
                        [](F4Grad& c) { c.call.indices.dims = {3}; });
  ExpectRefused<F4Grad>("permutedProbsOutputGradOptional has 3 element(s) but 4",
                        [](F4Grad& c) { c.call.probs.dims = {3}; });
  ExpectRefused<F4Grad>("probsGradOutOptional of shape [2, 2] does not hold 4 x 2", [](F4Grad& c) {
    c.call.probs_out.dims = {2, 2};
  });
  ExpectRefused<F4Grad>("tokensGradOut of shape [3, 1] does not hold 4 x 1", [](F4Grad& c) {
    c.call.tokens_out.dims = {3, 1};
  });
}

TEST(CannPhase2, RefusedForward) {
  ExpectRefused<F1Forward>("sortedIndicesOut of shape [5] does not hold 6 x 1",
                           [](F1Forward& c) { c.call.indices_out.dims = {5}; });
  ExpectRefused<F1Forward>("permuteProbsOutOptional of shape [6, 2]", [](F1Forward& c) {
    c.call.probs_out.dims = {6, 2};
    c.call.probs_out.storage = {12};
  });
  ExpectRefused<F1Forward>("reaches outside its storage",
                           [](F1Forward& c) { c.call.tokens.storage = {5}; });
  ExpectRefused<F1Forward>("permuteTokensOut has shape [6, 2] but its address is null",
                           [](F1Forward& c) { c.call.tokens_out.data = nullptr; });
}

// Shapes that no check compares and that stay inside their tensors.
TEST(CannPhase2, ShapesThatFit) {
  Stream stream;
  {  // fewer rows than tokens: no slots
    F1Grad one;
    one.call.rows.dims = {2, 2};
    one.call.probs.dims = {2};
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, Floats(6, 0));
    EXPECT_EQ(one.probs_out, (Floats{1, 0, 0, 2, 0, 0, 0, 0, 0}));
  }
  {  // more indices, more rows and another rank of outputs, fewer probs than routes
    F1Grad one;
    one.indices.push_back(77);
    one.call.indices = Of({7, 1}, one.indices);
    one.tokens_out.assign(10, 99);
    one.call.tokens_out = Of({5, 2, 1}, one.tokens_out);
    one.call.probs.dims = {3};
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, (Floats{17, -17, 6, -6, 40, -40, 0, 0, 0, 0}));
    EXPECT_EQ(one.probs_out, (Floats{1, 0, 0, 2, 3, 0, 0, 0, 0}));
  }
  {  // the output as one dimension; no probs asked for, then their output is zeros
    F1Grad one;
    one.call.tokens_out.dims = {6};
    one.call.probs = NotGiven();
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, kTokensGrad);
    EXPECT_EQ(one.probs_out, Floats(9, 0));
  }
  {  // an output for probs that nobody gives and that is nothing
    F1Grad one;
    one.call.probs = NotGiven();
    one.call.probs_out.data = nullptr;
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    one.call.probs_out.dtype = -1;
    one.call.probs_out.data = one.probs_out.data();
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.probs_out, Floats(9, 99));
  }
  {  // a map of another size than tokensNum x numExperts, with an output like it
    F1Grad one;
    one.call.num_experts = 7;
    one.call.map.dims = one.call.probs_out.dims = {2, 3};
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, kTokensGrad);
    EXPECT_EQ(one.probs_out, (Floats{1, 0, 4, 2, 3, 0, 99, 99, 99}));
  }
  {  // rows that are no multiple of the experts: the tail is added, its probs are not used
    F4Grad one;
    one.call.num_experts = 3;
    one.probs_out.assign(12, 99);
    one.call.probs_out = Of({4, 3}, one.probs_out);
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, (Floats{9, 6, 0, 0}));
    EXPECT_EQ(one.probs_out, (Floats{1, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0}));
    one.call.num_experts = 5;  // no capacity: no probs at all
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.probs_out, Floats(12, 0));
    one.call.probs = NotGiven();  // then fewer indices than rows will do
    one.call.indices.dims = {2};
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, (Floats{1, 2, 0, 0}));
  }
  {  // forward: longer indices, more dimensions
    F1Forward one;
    one.indices_out.assign(8, 99);
    one.call.indices_out = Of({8}, one.indices_out);
    one.call.tokens_out.dims = {6, 1, 2};
    one.call.probs_out.dims = {6, 1};
    one.call.num_out_tokens = 8;
    ASSERT_EQ(RunCall(one.call, stream), kGood) << TakeError();
    EXPECT_EQ(one.tokens_out, kPermuted);
    EXPECT_EQ(one.probs_out, kPermutedProbs);
    EXPECT_EQ(one.indices_out, (std::vector<std::int32_t>{0, 4, 1, 2, 3, 5, 0, 0}));
  }
}

// The original returns at once; here what it leaves unwritten is zero.
TEST(CannPhase2, EmptyTensors) {
  Stream stream;
  F1Grad grad;
  grad.call.rows.dims = {6, 0};
  grad.call.tokens_out.dims = {3, 0};
  ASSERT_EQ(RunCall(grad.call, stream), kGood) << TakeError();
  EXPECT_EQ(grad.probs_out, Floats(9, 0));
  grad.call.rows.dims = {0, 2};
  grad.call.rows.data = nullptr;
  grad.call.tokens_out.dims = {3, 2};
  ASSERT_EQ(RunCall(grad.call, stream), kGood) << TakeError();
  EXPECT_EQ(grad.tokens_out, Floats(6, 0));

  F1Forward forward;
  forward.call.tokens.dims = forward.call.map.dims = forward.call.probs.dims = {0, 3};
  forward.call.tokens_out.dims = {0, 2};
  forward.call.probs_out.dims = {0};
  forward.call.num_out_tokens = 0;
  ASSERT_EQ(RunCall(forward.call, stream), kGood) << TakeError();
  EXPECT_EQ(forward.indices_out, std::vector<std::int32_t>(6, 0));
  EXPECT_EQ(forward.tokens_out, Floats(12, 99));
  // Tokens without elements are no empty call: indices and probs come out.
  F1Forward thin;
  thin.call.tokens.dims = {3, 0};
  thin.call.tokens_out.dims = {6, 0};
  ASSERT_EQ(RunCall(thin.call, stream), kGood) << TakeError();
  EXPECT_EQ(thin.indices_out, kSlots);
  EXPECT_EQ(thin.probs_out, kPermutedProbs);
}

// The original computes into memory of its own, so results may go where inputs are.
TEST(CannPhase2, SharedMemory) {
  Stream stream;
  F1Grad grad;
  grad.call.tokens_out = Of({3, 2}, grad.rows);
  grad.call.probs_out = Of({3, 3}, grad.rows);
  grad.call.probs_out.storage = {12};
  grad.call.tokens_out.storage = {12};
  ASSERT_EQ(RunCall(grad.call, stream), kGood) << TakeError();
  EXPECT_EQ(Floats(grad.rows.begin(), grad.rows.begin() + 9), kProbsGrad);  // written last

  F1Forward forward;
  forward.tokens.resize(12);
  forward.call.tokens = Of({3, 2}, forward.tokens);
  forward.call.tokens_out = Of({6, 2}, forward.tokens);
  ASSERT_EQ(RunCall(forward.call, stream), kGood) << TakeError();
  EXPECT_EQ(forward.tokens, kPermuted);

  // Elements of an output on each other: the last in order stays.
  F1Grad expanded;
  expanded.call.tokens_out.strides = {0, 1};
  ASSERT_EQ(RunCall(expanded.call, stream), kGood) << TakeError();
  EXPECT_EQ(expanded.tokens_out, (Floats{40, -40, 99, 99, 99, 99}));

  // No strides of two dimensions reach these.
  F1Forward odd;
  odd.tokens_out.assign(40, 99);
  odd.call.tokens = Of({3, 2}, odd.tokens);
  odd.call.tokens_out = Of({6, 2, 1}, odd.tokens_out);
  odd.call.tokens_out.strides = {1, 20, 5};
  odd.call.tokens_out.dims = {6, 2, 1};
  ASSERT_EQ(RunCall(odd.call, stream), kGood) << TakeError();
  for (std::size_t row = 0; row < 6; ++row) {
    EXPECT_EQ(odd.tokens_out[row], kPermuted[2 * row]);
    EXPECT_EQ(odd.tokens_out[row + 20], kPermuted[2 * row + 1]);
    EXPECT_EQ(odd.tokens_out[row + 10], 99);
  }
  F1Grad scattered;
  scattered.tokens_out.assign(64, 99);
  scattered.call.tokens_out = Of({3, 2, 1}, scattered.tokens_out);
  scattered.call.tokens_out.dims = {1, 3, 2};
  scattered.call.tokens_out.strides = {1, 7, 30};
  std::vector<std::int32_t> wide = {0, 4, -9, 1, 2, -9, 3, 5, -9};
  scattered.call.indices = Of({3, 2}, wide);
  scattered.call.indices.strides = {3, 1};
  ASSERT_EQ(RunCall(scattered.call, stream), kGood) << TakeError();
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(scattered.tokens_out[7 * t], kTokensGrad[2 * t]);
    EXPECT_EQ(scattered.tokens_out[7 * t + 30], kTokensGrad[2 * t + 1]);
  }
}

// Errors that only the data show come with the next synchronisation, once; then all is as before.
TEST(CannPhase2, ErrorsOfTheWork) {
  Stream stream;
  for (const std::int32_t bad : {4, -1, INT32_MAX, INT32_MIN}) {
    F4Grad one;
    one.indices[2] = bad;
    TakeError();
    EXPECT_EQ(RunCall(one.call, stream), (Codes{0, 0, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION})) << bad;
    EXPECT_THAT(TakeError(), HasSubstr("sorted_indices[2] = " + std::to_string(bad)));
    EXPECT_EQ(stream.Synchronize(), 0);
    one.indices[2] = 1;
    EXPECT_EQ(RunCall(one.call, stream), kGood);
    EXPECT_EQ(one.tokens_out, (Floats{9, 6, 0, 0}));
  }
  F1Forward forward;
  forward.map[1] = 1;  // token 0 has three routes
  TakeError();
  EXPECT_EQ(RunCall(forward.call, stream), (Codes{0, 0, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION}));
  EXPECT_THAT(TakeError(), HasSubstr("routing_map[0] has 3 routes but top_k = 2"));
  forward.map[1] = 0;
  EXPECT_EQ(RunCall(forward.call, stream), kGood);
  EXPECT_EQ(forward.tokens_out, kPermuted);
}

class Phase2Executor : public testing::Test {
 protected:
  Phase2Executor()
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

TEST_F(Phase2Executor, RunsOnce) {
  aclOpExecutor* const executor = Make();
  EXPECT_EQ(Phase2(executor), 0);
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_INNER);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_INNER);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER);
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
}

TEST_F(Phase2Executor, Workspace) {
  char workspace[16];
  aclOpExecutor* executor = Make();
  EXPECT_EQ(Phase2(executor, nullptr, 16), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_INNER);  // released by the refusal
  executor = Make();
  EXPECT_EQ(Phase2(executor, workspace, sizeof(workspace)), 0);  // more than needed is fine
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.probs_out, kProbsGrad);
}

TEST_F(Phase2Executor, StreamThatIsNone) {
  aclOpExecutor* const executor = Make();
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, 0, executor, &one),
            ACLNN_ERR_RUNTIME_ERROR);
  EXPECT_EQ(one.tokens_out, Floats(6, 99));
  EXPECT_EQ(Phase2(executor), ACLNN_ERR_INNER);
}

TEST_F(Phase2Executor, AnyOperatorRunsIt) {
  EXPECT_EQ(aclnnMoeTokenPermuteWithRoutingMap(nullptr, 0, Make(), stream.get()), 0);
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_EQ(one.tokens_out, kTokensGrad);
}

TEST_F(Phase2Executor, RepeatsWithNewAddresses) {
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
TEST_F(Phase2Executor, WhatIsSnapshot) {
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

}  // namespace
}  // namespace moeperm::test
