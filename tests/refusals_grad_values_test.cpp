// SPDX-License-Identifier: Apache-2.0
// Refusals of the gradient that need inputs of their own.
#include "support/contexts.hpp"
#include "support/fixtures.hpp"
#include "support/refusal.hpp"

namespace moeperm::test {
namespace {

// P005, second input: five gradients of probs for six rows.
TEST(Probes, P005_ProbsOfOtherLength) {
  const ForwardInputs f1 = NotPadded(F1());
  GradInputs inputs = GradOf(f1, RunForward(f1), kF1TokensGrad, kF1ProbsGrad);
  inputs.permuted_probs_grad = Tensor::OfFloats(DType::kFloat32, {5}, {1, 2, 3, 4, 5});
  GradOutputs outputs = MakeOutputs(inputs);
  ExpectRefused(PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs)), Code::kInvalidArgument,
                {"permuted_probs_grad", "5", "6"});
}

// Without columns there are no rows to read, and the index is checked all the same.
TEST(GradRefuses, ABadIndexWithHiddenZero) {
  GradInputs inputs{.sorted_indices = Tensor::OfInts(DType::kInt32, {4}, {0, 1, 6, -1})};
  inputs.permuted_tokens_grad = Tensor::OfFloats(DType::kFloat32, {6, 0}, {});
  inputs.num_tokens = 2;
  GradOutputs outputs = MakeOutputs(inputs);
  ExpectRefused(PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs)), Code::kIndexOutOfRange,
                {"sorted_indices[2] = 6"});
}

// The first bad position is named whatever the number of threads: a long index, two bad values.
TEST(GradRefuses, TheFirstBadIndex) {
  GradInputs inputs{.sorted_indices = Tensor(DType::kInt32, {200000})};
  for (std::int64_t slot = 0; slot < 200000; ++slot) {
    inputs.sorted_indices.SetBits(0, slot, slot == 70001 || slot == 199999 ? 12345U : 3U);
  }
  inputs.sorted_indices.Freeze();
  inputs.permuted_tokens_grad = Counting(DType::kFloat32, {9, 5});
  inputs.num_tokens = 100000;
  for (const Context& context : EveryContext()) {
    GradOutputs outputs = MakeOutputs(inputs);
    ExpectRefused(PermuteWithRoutingMapGrad(ArgsOf(inputs, outputs), context),
                  Code::kIndexOutOfRange, {"sorted_indices[70001] = 12345"});
    EXPECT_TRUE(outputs.tokens_grad->GuardsIntact("tokens_grad"));
  }
}

}  // namespace
}  // namespace moeperm::test
