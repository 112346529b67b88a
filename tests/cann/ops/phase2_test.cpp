// SPDX-License-Identifier: Apache-2.0
// What only phase 2 can tell, errors of the work, and outputs that share memory or have shapes of
// their own.
#include <gmock/gmock.h>

#include "fixtures.hpp"

namespace moeperm::test {
namespace {

using testing::HasSubstr;
constexpr Codes kGood = {0, 0, 0};
constexpr Codes kRefused = {0, ACLNN_ERR_PARAM_INVALID, 0};

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
    EXPECT_THAT(TakeError(),
                HasSubstr("aclnnMoeTokenPermuteWithRoutingMapGrad: sortedIndices[2] = " +
                          std::to_string(bad) + " but tokensNum = 4"));
    EXPECT_EQ(stream.Synchronize(), 0);
    one.indices[2] = 1;
    EXPECT_EQ(RunCall(one.call, stream), kGood);
    EXPECT_EQ(one.tokens_out, (Floats{9, 6, 0, 0}));
  }
  F1Forward forward;
  forward.map[1] = 1;  // token 0 has three routes
  TakeError();
  EXPECT_EQ(RunCall(forward.call, stream), (Codes{0, 0, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION}));
  EXPECT_THAT(
      TakeError(),
      HasSubstr("aclnnMoeTokenPermuteWithRoutingMap: routingMap[0] has 3 routes but top_k = 2"));
  forward.map[1] = 0;
  EXPECT_EQ(RunCall(forward.call, stream), kGood);
  EXPECT_EQ(forward.tokens_out, kPermuted);
}

}  // namespace
}  // namespace moeperm::test
