// SPDX-License-Identifier: Apache-2.0
// Results through the door, bit for bit those of the C++ interface and of the reference: both
// operators, both modes, every dtype, ragged maps, any layout of inputs and outputs.
#include "door.hpp"
#include "support/fixtures.hpp"
#include "support/random.hpp"

namespace moeperm::test {
namespace {

constexpr Codes kGood = {0, 0, 0};

Layout InLayout(Random& random) {
  return random.Chance(50) ? Layout::kDense : static_cast<Layout>(random.Below(kOutputLayouts));
}

Tensor Floats(Random& random, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor(dtype, std::move(shape), InLayout(random));
  FillRandom(random, tensor);
  return tensor;
}

ForwardInputs RandomForward(Random& random) {
  const std::int64_t tokens = 1 + random.Below(12);
  const std::int64_t experts = 1 + random.Below(9);
  const std::int64_t hidden = random.Chance(5) ? 0 : 1 + random.Below(40);
  const DType dtype = random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
  const DType probs = dtype == DType::kBFloat16 && random.Chance(50) ? DType::kFloat32 : dtype;
  const std::int64_t most = random.Below(experts + 1);
  const auto routing = random.Chance(50) ? RandomRouting(random, tokens, experts, most)
                                         : RandomTopK(random, tokens, experts, most);
  ForwardInputs inputs = {Floats(random, dtype, {tokens, hidden}),
                          MapTensor(random.OneOf({DType::kInt8, DType::kBool}), tokens, experts,
                                    routing, InLayout(random))};
  if (random.Chance(70)) inputs.probs = Floats(random, probs, {tokens, experts});
  inputs.drop_and_pad = random.Chance(40);
  if (inputs.drop_and_pad) {
    inputs.num_out_tokens = random.Below(tokens * experts + 1);
  } else {
    // Rows a token, at least as many as any token has routes.
    inputs.top_k = most + random.Below(experts - most + 1);
    inputs.num_out_tokens = inputs.top_k * tokens;
  }
  return inputs;
}

TEST(CannResults, ForwardAsTheLibrary) {
  Stream stream;
  Random random(20261);
  for (int i = 0; i < 4000; ++i) {
    ForwardInputs inputs = RandomForward(random);
    ForwardChoice choice;
    choice.permuted_tokens = InLayout(random);
    choice.permuted_probs = InLayout(random);
    choice.sorted_indices = InLayout(random);
    ForwardOutputs outputs = MakeOutputs(inputs, choice);
    ForwardCall call = CallOf(inputs, outputs);
    if (!inputs.drop_and_pad && inputs.top_k < inputs.num_experts()) {
      // The door rounds down.
      call.num_out_tokens += random.Below(inputs.num_tokens());
    }
    ASSERT_EQ(RunCall(call, stream), kGood) << TakeError();
    const ForwardOutputs want = RunForward(inputs);
    ASSERT_TRUE(Equals("permuted_tokens", outputs.permuted_tokens, want.permuted_tokens));
    ASSERT_TRUE(Equals("sorted_indices", outputs.sorted_indices, want.sorted_indices));
    if (inputs.probs) {
      ASSERT_TRUE(Equals("permuted_probs", *outputs.permuted_probs, *want.permuted_probs));
    }
  }
}

GradInputs RandomGrad(Random& random) {
  const std::int64_t tokens = 1 + random.Below(12);
  const std::int64_t experts = 1 + random.Below(9);
  const std::int64_t hidden = 1 + random.Below(40);
  const DType dtype = random.OneOf({DType::kFloat32, DType::kFloat16, DType::kBFloat16});
  const DType probs = dtype == DType::kBFloat16 && random.Chance(50) ? DType::kFloat32 : dtype;
  const bool pad = random.Chance(40);
  const std::int64_t rows =
      pad ? experts * (1 + random.Below(tokens)) : tokens * (1 + random.Below(experts));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
  for (std::int64_t& index : indices) {
    // Not padded: any negative number and any row there is not is skipped.
    index = pad ? random.Below(tokens)
                : random.OneOf<std::int64_t>({random.Below(rows), random.Below(rows), -1, -2,
                                              INT32_MIN, rows, INT32_MAX, random.Below(rows)});
  }
  GradInputs inputs = {
      .permuted_tokens_grad = Floats(random, dtype, {rows, hidden}),
      .sorted_indices = Tensor::OfInts(DType::kInt32, {rows}, indices, InLayout(random))};
  inputs.num_tokens = tokens;
  inputs.num_experts = experts;
  inputs.drop_and_pad = pad;
  inputs.skip_rows_out_of_range = true;
  inputs.routing_map = MapTensor(random.OneOf({DType::kInt8, DType::kBool}), tokens, experts,
                                 RandomRouting(random, tokens, experts, experts), InLayout(random));
  if (random.Chance(70)) inputs.permuted_probs_grad = Floats(random, probs, {rows});
  return inputs;
}

TEST(CannResults, GradientAsTheLibrary) {
  Stream stream;
  Random random(20262);
  for (int i = 0; i < 4000; ++i) {
    GradInputs inputs = RandomGrad(random);
    GradOutputs outputs = MakeOutputs(inputs, {InLayout(random), InLayout(random)});
    ASSERT_EQ(RunCall(CallOf(inputs, outputs), stream), kGood) << TakeError();
    const GradOutputs want = RunGrad(inputs);
    ASSERT_TRUE(Equals("tokens_grad", *outputs.tokens_grad, *want.tokens_grad));
    if (inputs.permuted_probs_grad) {
      ASSERT_TRUE(Equals("probs_grad", *outputs.probs_grad, *want.probs_grad));
    }
    ASSERT_TRUE(Matches(inputs, outputs, Reference(inputs)));
  }
}

TEST(CannResults, F1) {
  Stream stream;
  ForwardInputs forward = NotPadded(F1());
  ForwardOutputs permuted = MakeOutputs(forward);
  ASSERT_EQ(RunCall(CallOf(forward, permuted), stream), kGood) << TakeError();
  EXPECT_EQ(permuted.sorted_indices.Ints(), (std::vector<std::int64_t>{0, 4, 1, 2, 3, 5}));
  EXPECT_EQ(permuted.permuted_tokens.Floats(),
            (std::vector<float>{1, 10, 2, 20, 2, 20, 3, 30, 1, 10, 3, 30}));
  EXPECT_EQ(permuted.permuted_probs->Floats(),
            (std::vector<float>{.5, .75, .125, .375, .25, .625}));
  GradInputs grad = GradOf(forward, permuted, kF1TokensGrad, kF1ProbsGrad);
  GradOutputs grads = MakeOutputs(grad);
  ASSERT_EQ(RunCall(CallOf(grad, grads), stream), kGood) << TakeError();
  EXPECT_EQ(grads.tokens_grad->Floats(), (std::vector<float>{17, -17, 6, -6, 40, -40}));
  EXPECT_EQ(grads.probs_grad->Floats(), (std::vector<float>{1, 0, 5, 2, 3, 0, 0, 4, 6}));
}

TEST(CannResults, F4) {
  Stream stream;
  ForwardInputs forward = DropAndPad(F4(), 2);
  ForwardOutputs permuted = MakeOutputs(forward);
  ASSERT_EQ(RunCall(CallOf(forward, permuted), stream), kGood) << TakeError();
  EXPECT_EQ(permuted.sorted_indices.Ints(), (std::vector<std::int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(permuted.permuted_tokens.Floats(), (std::vector<float>{1, 2, 2, 1}));
  EXPECT_EQ(permuted.permuted_probs->Floats(), (std::vector<float>{.5, .25, .75, 0}));
  GradInputs grad = GradOf(forward, permuted, {1, 2, 4, 8}, {1, 2, 3, 4});
  grad.routing_map = Copy(forward.routing_map);  // not read, but probs want one
  grad.num_experts = 2;
  GradOutputs grads = MakeOutputs(grad);
  ASSERT_EQ(RunCall(CallOf(grad, grads), stream), kGood) << TakeError();
  EXPECT_EQ(grads.tokens_grad->Floats(), (std::vector<float>{9, 6, 0, 0}));
  EXPECT_EQ(grads.probs_grad->Floats(), (std::vector<float>{1, 4, 2, 3, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace moeperm::test
