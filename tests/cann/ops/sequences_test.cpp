// SPDX-License-Identifier: Apache-2.0
// Long random sequences of good and bad calls, objects and executors of all states mixed: every
// code is one that the interface documents, good calls give the library's bits, and nothing else
// happens.
#include <algorithm>
#include <deque>
#include <set>

#include "door.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

const std::set<int> kPhase1Codes = {0, 161001, 161002, 561103};
const std::set<int> kPhase2Codes = {0, 161001, 161002, 561000};
const std::set<int> kSyncCodes = {0, 507035};

// One thing of a tensor becomes something else. No storage and no element grows: a program that
// says more than it has is one that no library can see through.
void Spoil(Random& random, Spec* spec) {
  switch (random.Below(9)) {
    case 0:
      spec->given = false;
      break;
    case 1:
      spec->stale = true;
      break;
    case 2:
      if (const int dtype = random.OneOf<int>({-1, 0, 1, 2, 3, 9, 12, 27, 41});
          aclDataTypeSize(static_cast<aclDataType>(dtype)) <=
          aclDataTypeSize(static_cast<aclDataType>(spec->dtype))) {
        spec->dtype = dtype;
      }
      break;
    case 3:
      spec->data = nullptr;
      break;
    case 4:
      if (spec->dims.empty()) break;
      spec->dims[static_cast<std::size_t>(random.Below(std::ssize(spec->dims)))] =
          random.OneOf<std::int64_t>({-1, 0, 1, 2, 3, 4, 5, INT64_MAX, INT64_MIN, 1LL << 40});
      break;
    case 5:
      spec->dims.push_back(random.Below(3));
      spec->strides.push_back(random.Below(3));
      break;
    case 6:
      spec->offset = random.OneOf<std::int64_t>({-1, 1, 2, INT64_MAX, INT64_MIN});
      break;
    case 7:
      if (spec->strides.empty()) break;
      spec->strides[static_cast<std::size_t>(random.Below(std::ssize(spec->strides)))] =
          random.OneOf<std::int64_t>({-3, -1, 0, 2, 7, INT64_MAX, INT64_MIN});
      break;
    default:
      if (spec->storage.empty()) break;
      spec->storage = {std::min(spec->storage[0], random.OneOf<std::int64_t>({-1, 0, 1, 2, 3}))};
      break;
  }
}

ForwardInputs TinyForward(Random& random) {
  const std::int64_t tokens = 1 + random.Below(4);
  const std::int64_t experts = 1 + random.Below(4);
  const std::int64_t most = random.Below(experts + 1);
  ForwardInputs inputs = {
      Tensor(DType::kBFloat16, {tokens, 1 + random.Below(3)}),
      MapTensor(DType::kInt8, tokens, experts, RandomRouting(random, tokens, experts, most))};
  FillSmallIntegers(random, inputs.tokens);
  if (random.Chance(50)) {
    inputs.probs = Tensor(DType::kFloat32, {tokens, experts});
    FillSmallIntegers(random, *inputs.probs);
  }
  inputs.drop_and_pad = random.Chance(50);
  inputs.top_k = most;
  inputs.num_out_tokens = inputs.drop_and_pad ? random.Below(tokens * experts + 1) : most * tokens;
  return inputs;
}

GradInputs TinyGrad(Random& random) {
  const std::int64_t tokens = 1 + random.Below(4);
  const std::int64_t experts = 1 + random.Below(4);
  const bool pad = random.Chance(50);
  const std::int64_t rows = (pad ? experts : tokens) * (1 + random.Below(3));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
  for (auto& index : indices) index = random.Below(pad ? tokens : rows + 2) - (pad ? 0 : 1);
  GradInputs inputs = {.permuted_tokens_grad = Tensor(DType::kFloat16, {rows, 1 + random.Below(3)}),
                       .sorted_indices = Tensor::OfInts(DType::kInt32, {rows}, indices)};
  FillSmallIntegers(random, *inputs.permuted_tokens_grad);
  inputs.num_tokens = tokens;
  inputs.num_experts = experts;
  inputs.drop_and_pad = pad;
  inputs.skip_rows_out_of_range = true;
  inputs.routing_map =
      MapTensor(DType::kBool, tokens, experts, RandomRouting(random, tokens, experts, experts));
  if (random.Chance(50)) {
    inputs.permuted_probs_grad = Tensor(DType::kFloat16, {rows});
    FillSmallIntegers(random, *inputs.permuted_probs_grad);
  }
  return inputs;
}

void ExpectDocumented(const Codes& codes) {
  ASSERT_TRUE(kPhase1Codes.count(codes.phase1)) << codes;
  ASSERT_TRUE(kPhase2Codes.count(codes.phase2)) << codes;
  ASSERT_TRUE(kSyncCodes.count(codes.synchronize)) << codes;
}

void OneForward(Random& random, Stream& stream, int* bad) {
  ForwardInputs inputs = TinyForward(random);
  ForwardOutputs outputs = MakeOutputs(inputs);
  ForwardCall call = CallOf(inputs, outputs);
  if (random.Chance(50)) {
    ASSERT_EQ(RunCall(call, stream), Codes{}) << TakeError();
    const ForwardOutputs want = RunForward(inputs);
    ASSERT_TRUE(Equals("permuted_tokens", outputs.permuted_tokens, want.permuted_tokens));
    ASSERT_TRUE(Equals("sorted_indices", outputs.sorted_indices, want.sorted_indices));
    return;
  }
  Spec* const specs[] = {&call.tokens,     &call.map,       &call.probs,
                         &call.tokens_out, &call.probs_out, &call.indices_out};
  for (std::int64_t n = 1 + random.Below(2); n > 0; --n) Spoil(random, specs[random.Below(6)]);
  if (random.Chance(10)) call.num_out_tokens = random.OneOf<std::int64_t>({-1, 1, 3, INT64_MAX});
  const Codes codes = RunCall(call, stream);
  ExpectDocumented(codes);
  *bad += codes == Codes{} ? 0 : 1;
}

void OneGrad(Random& random, Stream& stream, int* bad) {
  GradInputs inputs = TinyGrad(random);
  GradOutputs outputs = MakeOutputs(inputs);
  GradCall call = CallOf(inputs, outputs);
  if (random.Chance(50)) {
    ASSERT_EQ(RunCall(call, stream), Codes{}) << TakeError();
    const GradOutputs want = RunGrad(inputs);
    ASSERT_TRUE(Equals("tokens_grad", *outputs.tokens_grad, *want.tokens_grad));
    return;
  }
  Spec* const specs[] = {&call.rows, &call.probs,      &call.indices,
                         &call.map,  &call.tokens_out, &call.probs_out};
  for (std::int64_t n = 1 + random.Below(2); n > 0; --n) Spoil(random, specs[random.Below(6)]);
  if (random.Chance(10)) call.num_tokens = random.OneOf<std::int64_t>({-1, 0, 1, 3, INT64_MAX});
  if (random.Chance(10)) call.num_experts = random.OneOf<std::int64_t>({-1, 0, 1, 3, INT64_MAX});
  const Codes codes = RunCall(call, stream);
  ExpectDocumented(codes);
  *bad += codes == Codes{} ? 0 : 1;
}

TEST(CannSequences, CallsGoodAndBad) {
  Stream stream;
  Random random(20263);
  int bad = 0;
  for (int i = 0; i < 100000 && !testing::Test::HasFailure(); ++i) {
    if (random.Chance(50)) {
      OneForward(random, stream, &bad);
    } else {
      OneGrad(random, stream, &bad);
    }
    if (i % 16 == 0) TakeError();
  }
  EXPECT_GT(bad, 20000);  // a good part of them is bad in fact
}

// Executors that wait, run, repeat and are destroyed in any order, several times too.
TEST(CannSequences, ExecutorsInAnyOrder) {
  Stream stream;
  Random random(20264);
  GradInputs inputs = TinyGrad(random);
  GradOutputs outputs = MakeOutputs(inputs);
  const GradCall call = CallOf(inputs, outputs);
  const AclTensor rows(call.rows), probs(call.probs), indices(call.indices), map(call.map),
      tokens_out(call.tokens_out), probs_out(call.probs_out);
  struct Known {
    aclOpExecutor* handle;
    bool live;
    bool repeatable;
  };
  std::deque<Known> all;
  for (int i = 0; i < 20000; ++i) {
    if (all.empty() || random.Chance(25)) {
      std::uint64_t size = 0;
      aclOpExecutor* executor = nullptr;
      ASSERT_EQ(
          aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
              rows.get(), probs.get(), indices.get(), map.get(), call.num_experts, call.num_tokens,
              call.drop_and_pad, tokens_out.get(), probs_out.get(), &size, &executor),
          0);
      all.push_back({executor, true, false});
    }
    Known& one = all[static_cast<std::size_t>(random.Below(std::ssize(all)))];
    switch (random.Below(3)) {
      case 0:
        ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGrad(nullptr, 0, one.handle, stream.get()),
                  one.live ? 0 : 561000);
        one.live = one.live && one.repeatable;
        break;
      case 1:
        ASSERT_EQ(aclSetAclOpExecutorRepeatable(one.handle), one.live ? 0 : 561000);
        one.repeatable = true;
        break;
      default:
        ASSERT_EQ(aclDestroyAclOpExecutor(one.handle), one.live ? 0 : 561000);
        one.live = false;
        break;
    }
    if (all.size() > 20) {
      if (all.front().live) {
        ASSERT_EQ(aclDestroyAclOpExecutor(all.front().handle), 0);
      }
      all.pop_front();
    }
  }
  for (const Known& one : all) {
    if (one.live) {
      EXPECT_EQ(aclDestroyAclOpExecutor(one.handle), 0);
    }
  }
  EXPECT_EQ(stream.Synchronize(), 0);
  EXPECT_TRUE(Matches(inputs, outputs, Reference(inputs)));
}

}  // namespace
}  // namespace moeperm::test
